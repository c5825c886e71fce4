// Buttons that make a call, so that you can see it in the log.

import { load, validate } from "../shop/cart.js";
import { call } from "../api/api.js";
import { asShopper } from "../shop/session.js";

export function startTries() {
  for (const button of document.querySelectorAll("[data-try]")) {
    button.addEventListener("click", () => make(button.dataset.try));
  }
}

function make(path) {
  if (path === "/cart") return load();
  if (path === "/cart/validate") return validate();
  return call("GET", path, { headers: asShopper() });
}
