// Parses the Swift of docs/mobile.md, from standard input.
const { readFileSync } = require("node:fs");
const Parser = require("tree-sitter");

const parser = new Parser();
parser.setLanguage(require("tree-sitter-swift"));
const { rootNode } = parser.parse(String(readFileSync(0)));
const fault = rootNode.descendantsOfType("ERROR")[0] ?? rootNode;
if (rootNode.hasError) console.log(`line ${fault.startPosition.row + 1}: ${fault.text}`);
