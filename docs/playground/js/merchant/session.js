// The store's API token. It stays until the tab is closed.

import { passing } from "../page/storage.js";

export const session = {
  get apiToken() { return passing.get("api_token"); },
  set apiToken(token) { passing.set("api_token", token); },
};

/** asStore returns the headers of a store's own calls. */
export function asStore() {
  return session.apiToken ? { Authorization: `Bearer ${session.apiToken}` } : {};
}
