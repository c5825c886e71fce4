// JSON for people: indented, with a colour for each kind of value.

import { el } from "./dom.js";

const tokens = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

const secret = /"cart_token": "([^"]{8})[^"]+"/g; // opens a cart: not for a shared screen

/** coloured is a list of nodes that shows a JSON text; one that is none, as it is. */
export function coloured(text) {
  let pretty;
  try {
    pretty = JSON.stringify(JSON.parse(text), null, 2).replace(secret, `"cart_token": "$1…"`);
  } catch {
    return [text];
  }
  const nodes = [];
  let from = 0;
  for (const match of pretty.matchAll(tokens)) {
    const [whole, string, colon, word] = match;
    const kind = string ? (colon ? "key" : "string") : word ? "word" : "number";
    nodes.push(pretty.slice(from, match.index), el("span", { class: `json-${kind}` }, string ?? whole), colon ?? "");
    from = match.index + whole.length;
  }
  nodes.push(pretty.slice(from));
  return nodes;
}
