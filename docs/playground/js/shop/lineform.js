// The forms that edit lines of a cart, in their places. A form stays as it is, with what is
// typed, when the cart is redrawn.

import { isBusy, refill, submit } from "../page/forms.js";
import { language, number, t } from "../page/language.js";
import { announce } from "../page/notices.js";
import { productForm } from "./choices.js";
import { products } from "./sample.js";

export class LineForms {
  #edits = new Map(); // line → { form, before }: its open form, and what it had at first

  constructor(device) {
    this.id = device.id;
    this.cart = device.cart;
    this.basket = device.part("basket");
    // A line that has gone, or is another shopper's, is no longer edited.
    this.cart.addEventListener("change", () => {
      const lines = this.cart.now?.items.map(({ id }) => id) ?? [];
      for (const id of this.#edits.keys()) if (!lines.includes(id)) this.#edits.delete(id);
    });
    this.cart.addEventListener("forget", () => this.#edits.clear());
  }

  /** of returns the open form of a line in the page's language, or undefined. */
  of(item) {
    const open = this.#edits.get(item.id);
    if (open && open.form.lang !== language()) {
      const typed = new FormData(open.form);
      open.form = this.#build(item);
      refill(open.form, typed);
    }
    return open?.form;
  }

  /** open starts to edit a line. */
  open(item) {
    const form = this.#build(item);
    refill(form, valuesOf(item));
    this.#edits.set(item.id, { form, before: new FormData(form) });
    this.#redraw();
    form.querySelector("input:checked, input:not([type='radio']), select, textarea").focus();
    form.scrollIntoView({ block: "nearest" });
  }

  /**
   * close ends an edit. Unless the shopper has left the cart meanwhile, it moves the focus
   * to the Edit button of the line `next`.
   */
  close(item, next = item.id) {
    this.#edits.delete(item.id);
    const here = this.basket.contains(document.activeElement) || document.activeElement === document.body;
    this.#redraw();
    if (!here) return;
    const button = this.basket.querySelector(`[data-key="${CSS.escape(`${next}-edit`)}"]`);
    (button ?? this.basket).focus();
    button?.closest(".line").scrollIntoView({ block: "nearest" });
  }

  /** outcomeOf returns what the last edit did to a line, or "". */
  outcomeOf(item) {
    const { edited } = this.cart;
    if (edited?.id !== item.id) return "";
    return t(edited.absorbed ? "absorbed" : "saved", { n: number(item.quantity) });
  }

  #redraw() {
    this.cart.dispatchEvent(new Event("change"));
  }

  #build(item) {
    return productForm({ class: "edit", id: `${this.id}-edit-${item.id}`, "aria-label": t("editOf", { name: item.name }) }, {
      product: products.find(({ id }) => id === item.product_id), plan: item.subscription_plan?.id,
      quantity: { name: "quantity", of: item.name, value: item.quantity, by: item.product.stock.step, key: `${item.id}-edit` },
      submit: t("save"), submitted: () => this.#save(item), canceled: () => this.#cancel(item),
    });
  }

  #cancel(item) {
    if (!isBusy(this.#edits.get(item.id).form)) this.close(item);
  }

  async #save(item) {
    const { form, before } = this.#edits.get(item.id);
    if (isBusy(form)) return;
    const members = changedMembers(new FormData(form), before);
    if (Object.keys(members).length === 0) return this.close(item);
    const answer = await submit(form, () => this.cart.edit(item, members));
    if (!answer) return;
    this.close(item, answer.data.item_id);
    const line = this.cart.now.items.find(({ id }) => id === answer.data.item_id);
    announce(line ? this.outcomeOf(line) : t("removed", { name: item.name }));
  }
}

/** valuesOf returns what a line has, by the names of the form's controls. */
function valuesOf(item) {
  return [
    ...item.custom_fields.map((f) => [`fields.${f.name}`, f.option ?? f.value]),
    ["notice", item.notice ?? ""],
  ];
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
