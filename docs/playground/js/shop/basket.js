// A device's cart: its lines, its coupon and what it adds up to.

import { redeemForm } from "./coupon.js";
import { el, redraw } from "../page/dom.js";
import { dateTime, money, number, onLanguage, t } from "../page/language.js";
import { Lines } from "./line.js";

export class Basket {
  constructor(device) {
    this.device = device;
    this.cart = device.cart;
    this.part = (name) => device.part(name);
    this.lines = new Lines(device);
    this.drawCoupon = redeemForm(device);
    this.part("reload").addEventListener("click", () => this.cart.load());
    this.part("clear").addEventListener("click", () => this.cart.clear());
    this.cart.addEventListener("change", () => this.#draw());
    onLanguage(() => this.#draw());
  }

  #draw() {
    const { now } = this.cart;
    if (!now) return;
    this.part("basket").setAttribute("aria-busy", "false");
    this.part("version").textContent = t("version", { version: number(now.version) });
    this.part("clear").hidden = now.items.length === 0;
    this.part("empty").hidden = now.items.length > 0;
    redraw(this.part("lines"), () => now.items.map((item) => this.lines.draw(item)), this.part("basket"));
    this.drawCoupon(now);
    this.part("totals").hidden = now.items.length === 0;
    this.part("totals").replaceChildren(...totals(now, this.cart.summary));
    this.part("lapses").textContent = now.expires_at ? t("lapses", { date: dateTime(now.expires_at) }) : "";
  }
}

/** totals shows the cart's amounts, and tax and payment once the summary matches the cart. */
function totals(cart, summary) {
  const price = (amount) => money(amount, cart.currency);
  const rows = [row(t("subtotal"), price(cart.subtotal))];
  if (cart.discount_amount > 0) rows.push(row(t("discount"), price(-cart.discount_amount)));
  if (summary && summary.version === cart.version) {
    const { tax, shipping } = summary;
    const taxes = tax.lines.length > 0 ? tax.lines : [tax];
    for (const { rate, amount } of taxes) rows.push(row(t(tax.included ? "taxIncluded" : "tax", { rate: number(rate) }), price(amount)));
    rows.push(row(t("shipping"), shipping.required ? price(shipping.cost) : t("noShipping")));
    if (summary.payment_required) rows.push(row(t("pay"), summary.payment_methods.filter((m) => m.enabled).map((m) => m.name).join(" · ")));
  }
  rows.push(row(t("total"), price(cart.total), "sum"));
  return rows;
}

function row(name, value, className = "") {
  return el("div", { class: className }, el("dt", {}, name), el("dd", {}, el("bdi", {}, value)));
}
