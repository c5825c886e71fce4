// The choice of the store: one of the demo's, or the store of a token that the visitor enters.

import { byId } from "../page/dom.js";
import { clearErrors, showErrors } from "../page/forms.js";
import { t } from "../page/language.js";
import { offered, session } from "./session.js";

const radios = () => Array.from(byId("store-switch").querySelectorAll("input"));

/** startStoreSwitch calls chosen whenever another store, or another token, is chosen. */
export function startStoreSwitch(chosen) {
  const form = byId("own-token");
  for (const radio of radios()) {
    radio.addEventListener("change", () => {
      session.store = radio.value;
      showStore();
      chosen();
    });
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearErrors(form);
    session.ownToken = form.elements.token.value.trim();
    if (session.ownToken) chosen();
    else showErrors(form, { token: [t("tokenNeeded")] });
  });
  form.elements.token.value = session.ownToken;
  showStore();
}

/** showStore shows which store is chosen. */
export function showStore() {
  for (const radio of radios()) {
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
