// A device's cart: its lines, its coupons and what is within reach, its buyer's country and what it adds up to.

import { countryChoice } from "./buyer.js";
import { redeemForm } from "./coupon.js";
import { el, redraw } from "../page/dom.js";
import { counted, dateTime, money, number, onLanguage, t } from "../page/language.js";
import { Lines } from "./line.js";

export class Basket {
  constructor(device) {
    this.device = device;
    this.cart = device.cart;
    this.part = (name) => device.part(name);
    this.lines = new Lines(device);
    this.drawCoupons = redeemForm(device);
    this.drawCountry = countryChoice(device);
    this.part("reload").addEventListener("click", () => this.cart.load());
    this.part("clear").addEventListener("click", () => this.cart.clear());
    this.cart.addEventListener("change", () => this.#draw());
    onLanguage(() => this.#draw());
  }

  #draw() {
    const { now } = this.cart;
    if (!now) return;
    this.part("basket").setAttribute("aria-busy", "false");
    this.part("version").hidden = now.version === 0; // the service does not have the cart
    this.part("version").textContent = t("version", { version: number(now.version) });
    this.part("clear").hidden = now.items.length === 0;
    this.part("empty").hidden = now.items.length > 0;
    redraw(this.part("lines"), () => now.items.map((item) => this.lines.draw(item)), this.part("basket"));
    this.drawCoupons(now);
    this.part("offers").replaceChildren(...(now.items.length > 0 ? now.offers.map((offer) => hint(offer, now.currency)) : []));
    this.drawCountry(now);
    this.part("totals").hidden = now.items.length === 0;
    this.part("totals").replaceChildren(...totals(now, this.cart.summary));
    this.part("lapses").textContent = now.expires_at ? t("lapses", { date: dateTime(now.expires_at) }) : "";
  }
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
