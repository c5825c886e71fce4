// The dialog of a product that is added, or of a line that is edited: its plan, its fields, a note and a quantity. The
// names of the inputs are those of the request fields.

import { el } from "../page/dom.js";
import { submit } from "../page/forms.js";
import { money, said, t } from "../page/language.js";
import { stepper } from "../page/stepper.js";
import { currency } from "./sample.js";

/**
 * openForm opens the dialog on a device. It closes when the call has succeeded.
 *
 * @param {Device} device
 * @param {{name: string, product?: object, item?: object, call: (members: object) => Promise, done: (answer: object) => void}} options
 *   product: of the sample, without it there is nothing to choose. item: the line; without it, the product is added.
 *   call: sends what the shopper has filled in, or has changed. done: called after the dialog has closed
 */
export function openForm(device, { name, product, item, call, done }) {
  const opener = document.activeElement.dataset.key;
  const form = formOf({ name, product, item }, send, () => dialog.close());
  for (const [control, value] of item ? valuesOf(item) : []) if (form.elements[control]) form.elements[control].value = value;
  const before = item ? new FormData(form) : new FormData();

  async function send() {
    const members = membersOf(form, before);
    if (item && Object.keys(members).length === 0) return dialog.close();
    const answer = await submit(form, () => call(members));
    if (!answer) return;
    dialog.close();
    done(answer);
  }

  const dialog = el("dialog", {
    "aria-label": item ? t("editOf", { name }) : name,
    onclose: () => {
      dialog.remove();
      if (document.activeElement === document.body) focusOn(device, opener); // the opener has been redrawn
    },
  }, form);
  device.root.append(dialog);
  dialog.showModal();
}

/** focusOn moves the focus to the control of the cart with a key, or to the cart. */
export function focusOn(device, key = "") {
  const control = device.part("lines").querySelector(`[data-key="${CSS.escape(key)}"]`);
  (control ?? device.part("basket")).focus();
  control?.closest(".line").scrollIntoView({ block: "nearest" });
}

function formOf({ name, product, item }, send, close) {
  return el("form", {
    class: item ? "edit" : "choose", noValidate: true,
    onsubmit: (event) => {
      event.preventDefault();
      send();
    },
  },
  el("p", { class: "name" }, el("bdi", {}, name)),
  product?.plans && plansOf(product, item?.subscription_plan?.id ?? product.plans[0].id),
  (product?.fields ?? []).map(fieldOf),
  el("label", { class: "field" }, el("span", {}, t("note")), el("textarea", { name: "notice", rows: 2, dir: "auto" })),
  el("div", { class: "row" },
    item ? stepper({ name: "quantity", of: name, value: item.quantity, by: item.product.stock.step, key: "form" })
      : stepper({ name: "qty", of: name, value: product.least ?? 1, by: product.step, key: "form" }),
    el("button", { class: "primary" }, t(item ? "save" : "add")),
    el("button", { type: "button", class: "plain", onclick: close }, t("cancel"))));
}

function plansOf({ plans }, chosen) {
  return el("fieldset", { class: "plans" },
    el("legend", {}, t("plan")),
    plans.map(({ id, label, duration, price }) => el("label", {},
      el("input", { type: "radio", name: "subscription_plan", value: id, checked: id === chosen, autofocus: id === chosen }),
      el("span", {}, label ? said(label) : t(duration)), el("b", {}, money(price, currency)))));
}

function fieldOf(f) {
  const name = `fields.${f.name}`;
  const control = f.options
    ? el("select", { name },
      el("option", { value: "" }, t("noChoice")),
      f.options.map((o) => el("option", { value: o.code }, o.price ? `${said(o.name)} (+${money(o.price, currency)})` : said(o.name))))
    : el("input", { name, autocomplete: "off", dir: "auto" });
  return el("label", { class: "field" },
    el("span", {}, el("bdi", {}, f.name), " ", el("small", {}, t(f.required ? "required" : "optional"))), control);
}

/** valuesOf returns what a line has, by the names of the controls. */
function valuesOf(item) {
  return [...item.custom_fields.map((f) => [`fields.${f.name}`, f.option ?? f.value]), ["notice", item.notice ?? ""]];
}

/** membersOf returns the members of the request that differ from before. Null clears. */
function membersOf(form, before) {
  const members = {};
  for (const [name, value] of new FormData(form)) {
    if (value === (before.get(name) ?? "")) continue;
    if (name.startsWith("fields.")) (members.fields ??= {})[name.slice("fields.".length)] = value || null;
    else if (name === "notice") members.notice = value || null;
    else members[name] = value.trim() === "" || Number.isNaN(Number(value)) ? value : Number(value);
  }
  return members;
}
