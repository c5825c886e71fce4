// Which store the merchant's tab reads, and the API token that identifies it.

import { call } from "../api/api.js";
import { demo, meetDemo } from "../demo.js";
import { passing } from "../page/storage.js";

// The demo lends tokens of two stores. "own" is the store of the token that the visitor enters.
const stores = ["sample", "long", "own"];

/** session has the chosen store and its token. Both last until the browser's tab is closed. */
export const session = {
  get store() {
    const chosen = passing.get("merchant_store");
    if (chosen === "own" || tokenOf(chosen)) return chosen;
    return stores.find(tokenOf) ?? "own";
  },
  set store(name) { passing.set("merchant_store", name); },

  get ownToken() { return passing.get("api_token"); },
  set ownToken(token) { passing.set("api_token", token); },

  get apiToken() { return tokenOf(this.store); },
};

/** offered reports whether the page can read a store. Without the demo there is only "own". */
export function offered(store) {
  return store === "own" || Boolean(tokenOf(store));
}

function tokenOf(store) {
  if (store === "sample") return demo.api_token;
  if (store === "long") return demo.long_list_token;
  return store === "own" ? session.ownToken : "";
}

/** ask makes a GET as the store. signal ends it. A demo that has restarted lends another token. */
export async function ask(path, signal) {
  const token = session.apiToken;
  const answer = await askWith(token, path, signal);
  if (answer.status !== 401 || session.store === "own") return answer;
  if (session.apiToken === token) await meetDemo();
  return session.apiToken === token ? answer : askWith(session.apiToken, path, signal);
}

function askWith(token, path, signal) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return call("GET", path, { headers, from: "merchant", signal });
}
