// JSON for people: indented, with a color for each kind of value.

import { el } from "../page/dom.js";

const tokens = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

const secret = /"cart_token": "([^"]{8})[^"]+"/g; // gives access to a cart: do not show it in full

/** colored returns nodes that show a JSON text. Other texts stay as they are. */
export function colored(text) {
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
