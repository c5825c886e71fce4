// The country of the buyer, which decides the tax.

import { el } from "../page/dom.js";
import { language, t } from "../page/language.js";
import { countries } from "./sample.js";

/** countryChoice starts a device's list of countries and returns the function that draws a cart's. */
export function countryChoice(device) {
  const choice = device.part("country");
  choice.addEventListener("change", () => device.cart.apply([{ op: "buyer", country: choice.value || null }]));
  let shown = ""; // a list that is open closes when it is drawn again
  return (cart) => {
    const country = cart.buyer.country ?? "";
    const listed = countries.includes(country) || !country ? countries : [...countries, country];
    if (shown !== `${language()} ${listed}`) choice.replaceChildren(...options(listed));
    shown = `${language()} ${listed}`;
    choice.value = country;
    device.part("buyer").hidden = cart.items.length === 0;
  };
}

function options(codes) {
  const names = new Intl.DisplayNames(language(), { type: "region" });
  const known = codes.map((code) => [code, names.of(code)]).sort(([, a], [, b]) => a.localeCompare(b, language()));
  return [["", t("countryUnknown")], ...known].map(([value, name]) => el("option", { value }, name));
}
