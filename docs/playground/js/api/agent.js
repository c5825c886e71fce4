// An AI agent, which uses the Universal Commerce Protocol. The service accepts a profile on this machine only
// from programs that are not a browser, so the demo sends the agent's calls.

import { newKey, send } from "./api.js";
import { base } from "./base.js";
import { language } from "../page/language.js";

const profile = new URL("playground/agent.json", base).href;

/** discover returns the URL of the carts of the shop. */
export async function discover() {
  const { body } = await ask("GET", new URL("/.well-known/ucp", base));
  const { endpoint } = body?.ucp?.services["dev.ucp.shopping"].find(({ transport }) => transport === "rest") ?? {};
  return `${endpoint}/carts`;
}

/** ask makes a call and returns its answer, whose body is the protocol's. lines are those of a cart. */
export function ask(method, address, lines) {
  const { href: url, pathname: path } = new URL(address);
  const headers = { Accept: "application/json", "Accept-Language": language(), "UCP-Agent": `profile="${profile}"` };
  if (!lines) return send({ method, path, url, headers }, { from: "agent" });
  const body = JSON.stringify({ line_items: lines });
  Object.assign(headers, { "Content-Type": "application/json", "Idempotency-Key": newKey() });
  return send({ method, path, url, headers, body }, { from: "agent" });
}
