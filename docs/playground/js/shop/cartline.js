// One line of the cart.

import { remove, setQuantity, state } from "./cart.js";
import { el, icon } from "../page/dom.js";
import { money, t } from "../page/language.js";
import { closeForm, formOf, openForm, outcomeOf } from "./lineform.js";
import { products } from "./sample.js";
import { stepper } from "../page/stepper.js";

const settle = 350; // ms without another click before a quantity is sent

const fresh = 2500; // ms for which a line that was edited is highlighted

const wanted = new Map(); // line → { quantity, timer } not sent yet

/** line draws an item of the cart, with the warnings of the last check. */
export function line(item, currency, warnings) {
  const problem = state.refusals[item.id] ?? item.issue?.message;
  const outcome = outcomeOf(item);
  const form = formOf(item);
  const highlit = outcome && Date.now() < state.edited.at + fresh;
  return el("li", { class: highlit ? "line edited" : "line", "data-line": item.id },
    el("div", { class: "art small", "data-art": artOf(item) }, icon(artOf(item), "drawing")),
    el("div", { class: "about" },
      el("p", { class: "name" }, el("bdi", {}, item.name)),
      !form && chosen(item, currency),
      item.quantity > 1 && el("p", { class: "hint" }, t("each", { price: money(item.unit_price, currency) })),
      item.discount > 0 && el("p", { class: "hint" }, t("lineDiscount", { amount: money(item.discount, currency) })),
      !form && item.notice && el("p", { class: "hint" }, t("noteOf", { note: item.notice })),
      outcome && el("p", { class: "outcome" }, outcome),
      problem && el("p", { class: "refusal" }, problem),
      warnings.map((w) => el("p", { class: "warning" }, w.message))),
    el("button", {
      class: "plain sign remove", "aria-label": t("remove", { name: item.name }), "data-key": `${item.id}-remove`,
      onclick: () => { forgetWanted(item); remove(item); },
    }, icon("remove")),
    el("div", { class: "row amounts" },
      !form && stepper({
        name: "quantity", of: item.name, key: item.id, by: item.product.stock.step,
        value: wantedOf(item), change: (n) => want(item, n),
      }),
      editButton(item, form),
      el("b", { class: "total" }, el("bdi", {}, item.pricing.formatted.total_price))),
    form);
}

function editButton(item, form) {
  return el("button", {
    class: "plain", "aria-label": t("editOf", { name: item.name }), "data-key": `${item.id}-edit`,
    "aria-expanded": String(Boolean(form)), "aria-controls": form?.id,
    onclick: () => {
      if (form) return closeForm(item);
      const quantity = wantedOf(item);
      forgetWanted(item);
      openForm(item, quantity);
    },
  }, t("edit"));
}

const wantedOf = (item) => wanted.get(item.id)?.quantity ?? item.quantity;

/** want sends a quantity when the shopper has stopped clicking. */
function want(item, quantity) {
  forgetWanted(item);
  if (quantity === item.quantity) return;
  const timer = setTimeout(() => {
    wanted.delete(item.id);
    setQuantity(item, quantity);
  }, settle);
  wanted.set(item.id, { quantity, timer });
}

function forgetWanted(item) {
  clearTimeout(wanted.get(item.id)?.timer);
  wanted.delete(item.id);
}

/** chosen are the plan and the fields that the shopper chose. */
function chosen(item, currency) {
  const parts = item.custom_fields.map((f) => {
    const extra = f.price ? ` (+${money(f.price, currency)})` : "";
    return [`${f.name}: `, el("bdi", {}, f.value), extra];
  });
  if (item.subscription_plan) parts.unshift([item.subscription_plan.duration_text]);
  return parts.map((part) => el("p", { class: "hint" }, ...part));
}

const artOf = (item) => products.find((p) => p.id === item.product_id)?.slug ?? "unknown";
