// The country of the buyer, which decides the tax.

import { el } from "../page/dom.js";
import { language, t } from "../page/language.js";
import { countries } from "./sample.js";

/** countryChoice starts a device's list of countries and returns the function that draws a cart's. */
export function countryChoice(device) {
  const choice = device.part("country");
  choice.addEventListener("change", () => device.cart.apply([{ op: "buyer", country: choice.value || null }]));
  return (cart) => {
    const names = new Intl.DisplayNames(language(), { type: "region" });
    const known = [...new Set([...countries, cart.buyer.country ?? ""])].filter(Boolean)
      .map((code) => [code, names.of(code)])
      .sort(([, a], [, b]) => a.localeCompare(b, language()));
    choice.replaceChildren(...[["", t("countryUnknown")], ...known].map(([value, name]) => el("option", { value }, name)));
    choice.value = cart.buyer.country ?? "";
    device.part("buyer").hidden = cart.items.length === 0;
  };
}
