// Which store the merchant's tab reads: one of the demo's, or the store of a token that the visitor enters. Both choices
// last until the browser's tab is closed.

import { call } from "../api/api.js";
import { demo, meetDemo } from "../demo.js";
import { byId } from "../page/dom.js";
import { clearErrors, showErrors } from "../page/forms.js";
import { t } from "../page/language.js";
import { passing } from "../page/storage.js";

const tokens = {
  sample: () => demo.api_token,
  long: () => demo.long_list_token,
  own: () => passing.get("api_token"),
};

/** session has the chosen store and its token. */
export const session = {
  get store() {
    const chosen = passing.get("merchant_store");
    return [chosen, ...Object.keys(tokens)].find(offered);
  },
  set store(name) { passing.set("merchant_store", name); },

  get apiToken() { return tokens[this.store](); },
};

/** offered reports whether the page can read a store. Without the demo there is only "own". */
export function offered(store) {
  return store === "own" || Boolean(tokens[store]?.());
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

/** startStoreSwitch calls chosen whenever another store, or another token, is chosen. */
export function startStoreSwitch(chosen) {
  const form = byId("own-token");
  byId("store-switch").addEventListener("change", ({ target }) => {
    session.store = target.value;
    showStore();
    chosen();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearErrors(form);
    passing.set("api_token", form.elements.token.value.trim());
    if (session.apiToken) chosen();
    else refuseToken(t("tokenNeeded"));
  });
  form.elements.token.value = tokens.own();
  showStore();
}

/** showStore shows which store is chosen. */
function showStore() {
  for (const radio of byId("store-switch").querySelectorAll("input")) {
    radio.checked = radio.value === session.store;
    radio.closest("label").hidden = !offered(radio.value);
  }
  byId("store-switch").hidden = !offered("sample") && !offered("long");
  byId("own-token").hidden = session.store !== "own";
}

/** refuseToken shows why the visitor's token was refused. */
export function refuseToken(message) {
  showErrors(byId("own-token"), { token: [message] });
}
