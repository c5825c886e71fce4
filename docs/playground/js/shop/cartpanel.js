// The cart panel. It shows the state of cart.js.

import { clear, dismissMerge, events, nameOf, state, validate } from "./cart.js";
import { startCoupon, drawCoupon } from "./couponform.js";
import { line } from "./cartline.js";
import { byId, el, icon, redraw, redrawIf } from "../page/dom.js";
import { counted, dateTime, money, number, onLanguage, t } from "../page/language.js";
import { session, customerOf } from "./session.js";

export function startCartPanel() {
  byId("cart-clear").addEventListener("click", clear);
  byId("validate").addEventListener("click", validate);
  startCoupon();
  events.addEventListener("change", draw);
  onLanguage(draw);
}

function draw() {
  const { cart } = state;
  if (!cart) return;
  const panel = byId("cart");
  panel.setAttribute("aria-busy", "false");
  byId("cart-count").textContent = number(cart.count);
  byId("cart-owner").textContent = session.jwt ? t("customer", { id: customerOf(session.jwt) }) : t("cartOfGuest");
  byId("cart-clear").hidden = cart.items.length === 0;
  byId("cart-empty").hidden = cart.items.length > 0;
  redraw(byId("cart-lines"), () => cart.items.map((item) => line(item, cart.currency, warningsOf(item))), panel);
  drawMerge();
  drawCoupon(cart);
  byId("totals").replaceChildren(...totals(cart));
  redrawIf(byId("validation"), state.validation, verdict);
  byId("cart-meta").textContent = cart.expires_at
    ? t("version", { version: number(cart.version), date: dateTime(cart.expires_at) }) : "";
}

function drawMerge() {
  byId("merge").hidden = !state.merge;
  byId("merge").className = `note ${state.merge?.code ? "warm" : "good"}`;
  redrawIf(byId("merge"), state.merge, () => (state.merge ? report(state.merge) : []));
}

/** report shows the result of a merge on login. */
function report({ lines, adjusted, code }) {
  const cuts = adjusted.map((a) => el("li", {}, t("cutTo", {
    name: nameOf(a.item_id), requested: number(a.requested), kept: number(a.kept), code: a.code,
  })));
  return [
    ...(lines > 0 || !code ? [el("p", {}, counted("merged", lines))] : []),
    ...(code ? [el("p", {}, t("noRoom"))] : []),
    el("button", { class: "plain sign", "aria-label": t("dismiss"), onclick: dismissMerge }, icon("close")),
    ...(cuts.length > 0 ? [el("ul", {}, cuts)] : []),
  ];
}

/** totals shows the cart's amounts, and tax and shipping once the summary matches the cart. */
function totals(cart) {
  const price = (amount) => money(amount, cart.currency);
  const rows = [row(t("subtotal"), price(cart.subtotal))];
  if (cart.discount_amount > 0) rows.push(row(t("discount"), price(-cart.discount_amount)));
  const { summary } = state;
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

/** verdict shows the result of the last check. Lines show their own warnings. */
function verdict() {
  const { validation } = state;
  if (!validation) return [];
  const found = [validation.valid
    ? el("div", { class: "note good" }, el("p", {}, t("valid")))
    : el("div", { class: "note bad" }, el("p", {}, t("invalid")), el("ul", {}, validation.issues.map((i) => el("li", {}, sentence(i)))))];
  if (validation.warnings.length > 0) {
    found.push(el("div", { class: "note warm" }, el("p", {}, t("warnings")), el("ul", {}, validation.warnings.map((w) => el("li", {}, w.message)))));
  }
  return found;
}

function sentence({ message, requested, available }) {
  if (available === null) return message;
  return t("asked", { message, requested: number(requested), available: number(available) });
}

function warningsOf(item) {
  return (state.validation?.warnings ?? []).filter((w) => w.item_id === item.id);
}
