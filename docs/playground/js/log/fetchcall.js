// A request of this page as JavaScript.

/** fetchOf writes a request as an ES module that makes the same call and prints the response. */
export function fetchOf({ method, path, url, headers, body }) {
  const headerLines = Object.entries(headers).map(([name, value]) => `    ${nameOf(name)}: ${JSON.stringify(value)},`);
  return [
    `const response = await fetch(${JSON.stringify(url)}, {`,
    `  method: ${JSON.stringify(method)},`,
    `  headers: {`,
    ...headerLines,
    `  },`,
    ...(body === undefined ? [] : [`  body: JSON.stringify(${literal(JSON.parse(body), "  ")}),`]),
    `});`,
    path === "/cart/events" ? `for await (const text of response.body.pipeThrough(new TextDecoderStream())) console.log(text);`
      : `console.log(response.status, await response.${headers["If-None-Match"] ? "text" : "json"}());`, // 304 has no body
  ].join("\n");
}

/** literal writes a JSON value as a JavaScript expression, with lines after the first one indented. */
export function literal(value, indent = "") {
  return JSON.stringify(value, null, 2).replaceAll("\n", `\n${indent}`);
}

const nameOf = (header) => (/^\w+$/.test(header) ? header : JSON.stringify(header));
