// Fills a cart with the official SDK for TypeScript, by the URL of a shop's tools and that of the platform's profile.
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, profile] = process.argv.slice(2);
const meta = { "ucp-agent": { profile } };
const client = new Client({ name: "tests", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
assert.deepEqual(tools.map(({ name }) => name).sort(), ["cancel_cart", "create_cart", "get_cart", "update_cart"]);

const call = async (name, args) => (await client.callTool({ name, arguments: { meta, ...args } })).structuredContent;
const made = await call("create_cart", { cart: { line_items: [{ item: { id: "2" }, quantity: 3 }] } });
await assert.rejects(call("steal_cart", {}), /There is no such tool/);
const read = await call("get_cart", { id: made.id });
assert.deepEqual(read.line_items, made.line_items);
const [line] = read.line_items;
const changed = await call("update_cart", { id: made.id, cart: { line_items: [{ id: line.id, item: { id: line.item.id }, quantity: 1 }] } });
assert.equal(changed.line_items[0].quantity, 1);
assert.equal((await call("cancel_cart", { id: made.id })).totals.at(-1).amount, 1000);
await client.ping();
await client.close();
