// A device's cart: its lines, its coupons and what is within reach, its buyer's country and what it adds up to.

import { redeemForm } from "./coupon.js";
import { el, redraw } from "../page/dom.js";
import { counted, dateTime, language, money, number, onLanguage, t } from "../page/language.js";
import { Lines } from "./line.js";
import { countries } from "./sample.js";

/** startBasket draws the cart of a device whenever it changes. */
export function startBasket(device) {
  const { cart } = device;
  const part = (name) => device.part(name);
  const lines = new Lines(device);
  const drawCoupons = redeemForm(device);
  const drawCountry = countryChoice(device);

  function draw() {
    const { now } = cart;
    if (!now) return;
    const filled = now.items.length > 0;
    part("basket").setAttribute("aria-busy", "false");
    part("version").hidden = now.version === 0; // the service does not have the cart
    part("version").textContent = t("version", { version: number(now.version) });
    part("empty").hidden = filled;
    for (const name of ["clear", "buyer", "totals"]) part(name).hidden = !filled;
    redraw(part("lines"), () => now.items.map((item) => lines.draw(item)), part("basket"));
    drawCoupons(now);
    drawCountry(now);
    part("offers").replaceChildren(...(filled ? now.offers.map((offer) => hint(offer, now.currency)) : []));
    part("totals").replaceChildren(...(filled ? totals(now, cart.summary) : []));
    part("lapses").textContent = now.expires_at ? t("lapses", { date: dateTime(now.expires_at) }) : "";
  }

  part("reload").addEventListener("click", () => cart.load());
  part("clear").addEventListener("click", () => cart.clear());
  cart.addEventListener("change", draw);
  onLanguage(draw);
}

/** countryChoice starts the list of the buyer's countries, which decide the tax, and returns the function that draws a cart's. */
function countryChoice(device) {
  const choice = device.part("country");
  choice.addEventListener("change", () => device.cart.apply([{ op: "buyer", country: choice.value || null }]));
  onLanguage(() => choice.replaceChildren(...countryOptions()));
  return ({ buyer: { country } }) => { choice.value = country ?? ""; };
}

function countryOptions() {
  const names = new Intl.DisplayNames(language(), { type: "region" });
  const known = countries.map((code) => [code, names.of(code)]).sort(([, a], [, b]) => a.localeCompare(b, language()));
  return [["", t("countryUnknown")], ...known].map(([value, name]) => el("option", { value }, name));
}

/** hint says what a cart lacks for a discount. */
function hint({ name, missing_amount: amount, missing_quantity: quantity }, currency) {
  const lack = amount ? t("offerAmount", { amount: money(amount, currency) }) : counted("offerQuantity", quantity);
  return el("li", { class: "hint" }, lack, " ", el("bdi", {}, name));
}

/** totals shows the amounts that make up the total, and more once the summary of the same cart is known. */
function totals(cart, summary) {
  const price = (amount) => money(amount, cart.currency);
  const rows = [row(t("subtotal"), price(cart.subtotal))];
  for (const { name, code, amount } of cart.discounts) {
    rows.push(row(el("bdi", {}, name === code ? t("couponGiven", { code }) : name), price(-amount), "discount"));
  }
  if (summary?.version === cart.version) rows.push(...summed(summary, price));
  else rows.push(row(t("taxInTotal"), price(cart.tax_amount)));
  return rows;
}

function summed({ tax, shipping, payment_required: pays, payment_methods: methods }, price) {
  const taxes = tax.lines.length > 0 ? tax.lines : [tax];
  return [
    ...taxes.map(({ rate, amount }) => row(t(tax.included ? "taxIncluded" : "tax", { rate: number(rate) }), price(amount))),
    row(t("shipping"), shipping.required ? price(shipping.cost) : t("noShipping")),
    ...(pays ? [row(t("pay"), methods.filter((m) => m.enabled).map((m) => m.name).join(" · "))] : []),
  ];
}

function row(name, value, className = "") {
  return el("div", { class: className }, el("dt", {}, name), el("dd", {}, el("bdi", {}, value)));
}
