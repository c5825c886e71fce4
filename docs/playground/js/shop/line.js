// The lines of a device's cart.

import { el, icon } from "../page/dom.js";
import { money, number, t } from "../page/language.js";
import { announce, coded } from "../page/notices.js";
import { stepper } from "../page/stepper.js";
import { focusOn, openForm } from "./form.js";
import { picture } from "./picture.js";
import { products } from "./sample.js";

const fresh = 2500; // ms for which a line that has changed is highlighted

export class Lines {
  #asked = new Map(); // line → the quantity that waits for its answer

  constructor(device) {
    this.device = device;
    this.cart = device.cart;
  }

  /** draw draws an item of the cart. */
  draw(item) {
    const { now: { currency }, validation, changed } = this.cart;
    const warnings = (validation?.warnings ?? []).filter((w) => w.item_id === item.id);
    return el("li", { class: Date.now() < changed[item.id] + fresh ? "line fresh" : "line", "data-line": item.id },
      picture(item.image, "small"),
      el("div", { class: "about" },
        el("p", { class: "name" }, el("bdi", {}, item.name)),
        chosen(item, currency),
        el("p", { class: "hint" }, priceOf(item, currency)),
        item.discount > 0 && el("p", { class: "hint" }, t("lineDiscount", { amount: money(item.discount, currency) })),
        item.notice && el("p", { class: "hint" }, t("noteOf", { note: item.notice })),
        this.cart.edited?.id === item.id && el("p", { class: "outcome-of-edit" }, this.#saved(item)),
        item.issue && el("div", { class: "refusal" }, coded(item.issue.code, item.issue.message)),
        warnings.map((w) => el("div", { class: "warning" }, coded(w.code, w.message)))),
      el("b", { class: "total" }, el("bdi", {}, item.pricing.formatted.total_price)),
      el("div", { class: "row amounts" },
        stepper({
          name: "quantity", of: item.name, key: item.id, by: item.product.stock.step,
          value: this.#asked.get(item.id) ?? item.quantity, change: (n) => this.#ask(item, n),
        }),
        el("button", {
          class: "plain", "aria-label": t("editOf", { name: item.name }), "data-key": `${item.id}-edit`, "aria-haspopup": "dialog",
          onclick: () => this.#edit(item),
        }, t("edit")),
        el("button", {
          class: "plain sign remove", "aria-label": t("remove", { name: item.name }), "data-key": `${item.id}-remove`,
          onclick: () => this.#remove(item),
        }, icon("remove"))));
  }

  #edit(item) {
    openForm(this.device, {
      name: item.name, item, product: products.find(({ id }) => id === item.product_id),
      call: (members) => this.cart.edit(item, members),
      done: ({ data: { items, item_id: id } }) => {
        focusOn(this.device, `${id}-edit`);
        const line = items.find((other) => other.id === id);
        announce(line ? this.#saved(line) : t("removed", { name: item.name }));
      },
    });
  }

  /** #saved says what the last edit did to a line. */
  #saved(item) {
    return t(this.cart.edited.absorbed ? "absorbed" : "saved", { n: number(item.quantity) });
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
