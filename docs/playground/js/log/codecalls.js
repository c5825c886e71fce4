// A request of this page as a shell command, and as JavaScript.

/** curlOf writes a request so that pasting it into a shell makes the same call. */
export function curlOf({ method, path, url, headers, body }) {
  const parts = [`curl -i${path === "/cart/events" ? "N" : ""} -X ${method} ${quoted(url)}`]; // N: shows what has come
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body !== undefined) parts.push(`--data-raw ${quoted(body)}`);
  return parts.join(" \\\n  ");
}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** fetchOf writes a request as an ES module that makes the same call and prints the response. */
export function fetchOf({ method, path, url, headers, body }) {
  return [
    `const response = await fetch(${JSON.stringify(url)}, {`,
    `  method: ${JSON.stringify(method)},`,
    `  headers: {`,
    ...Object.entries(headers).map(([name, value]) => `    ${nameOf(name)}: ${JSON.stringify(value)},`),
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
