// The lines of a device's cart.

import { el, icon } from "../page/dom.js";
import { money, number, t } from "../page/language.js";
import { announce, coded } from "../page/notices.js";
import { stepper } from "../page/stepper.js";
import { LineForms } from "./lineform.js";
import { refusalOf } from "./outcome.js";
import { picture } from "./picture.js";

const fresh = 2500; // ms for which a line that has changed is highlighted

export class Lines {
  #asked = new Map(); // line → the quantity that waits for its answer
  #shown = new Map(); // line → { quantity, since }, to see what has changed

  constructor(device) {
    this.cart = device.cart;
    this.forms = new LineForms(device);
    this.cart.addEventListener("forget", () => this.#shown.clear());
  }

  /** draw draws an item of the cart. */
  draw(item) {
    const { now: { currency }, refusals, validation } = this.cart;
    const refusal = refusals[item.id];
    const warnings = (validation?.warnings ?? []).filter((w) => w.item_id === item.id);
    const outcome = this.forms.outcomeOf(item);
    const cut = this.cart.outcome?.answer.merge?.adjusted.find((a) => a.item_id === item.id);
    const form = this.forms.of(item);
    return el("li", { class: this.#isFresh(item) ? "line fresh" : "line", "data-line": item.id },
      picture(item.image, "small"),
      el("div", { class: "about" },
        el("p", { class: "name" }, el("bdi", {}, item.name)),
        !form && chosen(item, currency),
        el("p", { class: "hint" }, priceOf(item, currency)),
        item.discount > 0 && el("p", { class: "hint" }, t("lineDiscount", { amount: money(item.discount, currency) })),
        !form && item.notice && el("p", { class: "hint" }, t("noteOf", { note: item.notice })),
        outcome && el("p", { class: "outcome-of-edit" }, outcome),
        cut && el("div", { class: "warning" }, coded(cut.code, t("cutShort", { requested: number(cut.requested), kept: number(cut.kept) }))),
        (refusal || item.issue) && el("div", { class: "refusal" }, refusal ? refusalOf(refusal) : coded(item.issue.code, item.issue.message)),
        warnings.map((w) => el("div", { class: "warning" }, coded(w.code, w.message)))),
      el("b", { class: "total" }, el("bdi", {}, item.pricing.formatted.total_price)),
      el("div", { class: "row amounts" },
        !form && stepper({
          name: "quantity", of: item.name, key: item.id, by: item.product.stock.step,
          value: this.#asked.get(item.id) ?? item.quantity, change: (n) => this.#ask(item, n),
        }),
        this.#editButton(item, form),
        el("button", {
          class: "plain sign remove", "aria-label": t("remove", { name: item.name }), "data-key": `${item.id}-remove`,
          onclick: () => this.#remove(item),
        }, icon("remove"))),
      form);
  }

  /** #isFresh reports whether a line is new or has another quantity since a moment ago. */
  #isFresh(item) {
    const before = this.#shown.get(item.id);
    const changed = before?.quantity !== item.quantity || this.cart.edited?.id === item.id && this.cart.edited.at > before.since;
    if (changed) this.#shown.set(item.id, { quantity: item.quantity, since: before || this.#shown.size > 0 || this.cart.now.version < 2 ? Date.now() : 0 });
    return Date.now() < this.#shown.get(item.id).since + fresh;
  }

  #editButton(item, form) {
    return el("button", {
      class: "plain", "aria-label": t("editOf", { name: item.name }), "data-key": `${item.id}-edit`,
      "aria-expanded": String(Boolean(form)), "aria-controls": form?.id,
      onclick: () => (form ? this.forms.close(item) : this.forms.open(item)),
    }, t("edit"));
  }

  async #remove(item) {
    const answer = await this.cart.remove(item);
    if (answer.ok) announce(t("removed", { name: item.name }));
  }

  /** #ask sends a quantity. The line shows it until the answer comes. */
  async #ask(item, quantity) {
    if (quantity === (this.#asked.get(item.id) ?? item.quantity)) return;
    this.#asked.set(item.id, quantity);
    await this.cart.setQuantity(item, quantity);
    if (this.#asked.get(item.id) === quantity) this.#asked.delete(item.id);
  }
}

/** priceOf is the unit price, and the former one if it has changed since the line was added. */
function priceOf(item, currency) {
  const each = t("each", { price: money(item.unit_price, currency) });
  if (item.added_price === item.unit_price) return each;
  return [each, " ", el("s", {}, money(item.added_price, currency))];
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
