// The form that edits a line of the cart, in its place. It stays as it is, with what is
// typed, when the cart is redrawn.

import { edit, events, refusedByRule, state } from "./cart.js";
import { choices } from "./choices.js";
import { byId, el } from "../page/dom.js";
import { clearErrors, refill, showErrors } from "../page/forms.js";
import { language, number, t } from "../page/language.js";
import { announce } from "../page/notices.js";
import { products } from "./sample.js";
import { stepper } from "../page/stepper.js";

const edits = new Map(); // line → { form, before }: its open form, and what it had at first

/** formOf returns the open form of a line in the page's language, or undefined. */
export function formOf(item) {
  const open = edits.get(item.id);
  if (open && open.form.lang !== language()) {
    const typed = new FormData(open.form);
    open.form = build(item);
    refill(open.form, typed);
  }
  return open?.form;
}

/** openForm starts to edit a line. quantity is what the shopper wants but has not sent. */
export function openForm(item, quantity) {
  const form = build(item);
  refill(form, valuesOf(item));
  const before = new FormData(form);
  refill(form, [["quantity", quantity]]);
  edits.set(item.id, { form, before });
  events.dispatchEvent(new Event("change"));
  form.querySelector("input:checked, input:not([type='radio']), select, textarea").focus();
  form.scrollIntoView({ block: "nearest" });
}

/**
 * closeForm ends an edit. Unless the shopper has left the cart meanwhile, it moves the
 * focus to the Edit button of the line `next`.
 */
export function closeForm(item, next = item.id) {
  edits.delete(item.id);
  const panel = byId("cart");
  const here = panel.contains(document.activeElement) || document.activeElement === document.body;
  events.dispatchEvent(new Event("change"));
  if (!here) return;
  const button = panel.querySelector(`[data-key="${CSS.escape(`${next}-edit`)}"]`);
  (button ?? panel).focus();
  button?.closest(".line").scrollIntoView({ block: "nearest" });
}

/** outcomeOf returns what the last edit did to a line, or "". */
export function outcomeOf(item) {
  if (state.edited?.id !== item.id) return "";
  return t(state.edited.absorbed ? "absorbed" : "saved", { n: number(item.quantity) });
}

function build(item) {
  const product = products.find((p) => p.id === item.product_id);
  return el("form", {
    class: "edit", id: `edit-${item.id}`, lang: language(), noValidate: true, "aria-label": t("editOf", { name: item.name }),
    onsubmit: (event) => { event.preventDefault(); save(item); },
    onkeydown: (event) => { if (event.key === "Escape" && !event.isComposing) cancel(item); },
  },
  product && choices(product, item.subscription_plan?.id),
  el("label", { class: "field" }, el("span", {}, t("note")), el("textarea", { name: "notice", rows: 2, dir: "auto" })),
  el("div", { class: "field" },
    el("span", { "aria-hidden": "true" }, t("quantity")), // the stepper has its own label
    el("div", { class: "row" },
      stepper({ name: "quantity", of: item.name, value: item.quantity, by: item.product.stock.step, key: `${item.id}-edit` }))),
  el("div", { class: "row" },
    el("button", { class: "primary" }, t("save")),
    el("button", { type: "button", onclick: () => cancel(item) }, t("cancel"))));
}

/** valuesOf returns what a line has, by the names of the form's controls. */
function valuesOf(item) {
  return [
    ...item.custom_fields.map((f) => [`fields.${f.name}`, f.option ?? f.value]),
    ["notice", item.notice ?? ""],
  ];
}

function cancel(item) {
  if (!isBusy(edits.get(item.id).form)) closeForm(item);
}

async function save(item) {
  const { form, before } = edits.get(item.id);
  if (isBusy(form)) return;
  clearErrors(form);
  const members = changedMembers(new FormData(form), before);
  if (Object.keys(members).length === 0) return closeForm(item);
  setBusy(form, true);
  const answer = await edit(item, members);
  setBusy(form, false);
  if (answer.ok) finish(item, answer.data.item_id);
  else if (refusedByRule(answer)) showErrors(form, answer.errors, answer.message);
}

function finish(item, id) {
  closeForm(item, id);
  const line = state.cart.items.find((other) => other.id === id);
  announce(line ? outcomeOf(line) : t("removed", { name: item.name }));
}

/** changedMembers returns the body of PATCH: what the shopper changed. Null clears. */
function changedMembers(now, before) {
  const members = {};
  for (const [name, value] of now) {
    if (value === before.get(name)) continue;
    if (name.startsWith("fields.")) (members.fields ??= {})[name.slice("fields.".length)] = value || null;
    else if (name === "notice") members.notice = value || null;
    else members[name] = value.trim() === "" || Number.isNaN(Number(value)) ? value : Number(value);
  }
  return members;
}

// A busy form keeps the focus, so its controls are not disabled.
const isBusy = (form) => form.ariaBusy === "true";

function setBusy(form, busy) {
  form.ariaBusy = String(busy);
  form.querySelector(".primary").textContent = t(busy ? "saving" : "save");
}

// A line that has gone, or is another shopper's, is no longer edited.
events.addEventListener("change", () => {
  const lines = state.cart?.items.map(({ id }) => id) ?? [];
  for (const id of edits.keys()) if (!lines.includes(id)) edits.delete(id);
});
events.addEventListener("forget", () => edits.clear());
