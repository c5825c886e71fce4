// A request of this page as a shell command.

/** curlOf writes a request so that pasting it into a shell makes the same call. */
export function curlOf({ method, path, url, headers, body }) {
  const parts = [`curl -i${path === "/cart/events" ? "N" : ""} -X ${method} ${quoted(url)}`]; // N: shows what has come
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body !== undefined) parts.push(`--data-raw ${quoted(body)}`);
  return parts.join(" \\\n  ");
}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
