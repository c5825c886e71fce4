// The form of a product or of a line: its plan, its fields, a note and a quantity. The names of the inputs are those of
// the request fields.

import { el } from "../page/dom.js";
import { formOf } from "../page/forms.js";
import { money, said, t } from "../page/language.js";
import { stepper } from "../page/stepper.js";
import { currency } from "./sample.js";

/**
 * productForm makes the form.
 *
 * @param {object} properties of the form
 * @param {{product?: object, plan?: number, quantity: object, submit: string, submitted: () => void, canceled: () => void}} options
 *   product: of the sample, without it there is nothing to choose. plan: the id of the one that is checked. quantity: see
 *   stepper. submit: the word on the button
 */
export function productForm(properties, { product, plan = product?.plans?.[0].id, quantity, submit, submitted, canceled }) {
  return formOf(properties, submitted, canceled,
    product?.plans && plans(product, plan), (product?.fields ?? []).map(field),
    el("label", { class: "field" }, el("span", {}, t("note")), el("textarea", { name: "notice", rows: 2, dir: "auto" })),
    el("div", { class: "row" },
      stepper(quantity),
      el("button", { class: "primary" }, submit),
      el("button", { type: "button", class: "plain", onclick: canceled }, t("cancel"))));
}

function plans(product, chosen) {
  return el("fieldset", { class: "plans" },
    el("legend", {}, t("plan")),
    product.plans.map((plan) => el("label", {},
      el("input", { type: "radio", name: "subscription_plan", value: plan.id, checked: plan.id === chosen }),
      el("span", {}, plan.label ? said(plan.label) : t(plan.duration)), el("b", {}, money(plan.price, currency)))));
}

function field(f) {
  const name = `fields.${f.name}`;
  const control = f.options
    ? el("select", { name },
      el("option", { value: "" }, t("noChoice")),
      f.options.map((o) => el("option", { value: o.code }, o.price ? `${said(o.name)} (+${money(o.price, currency)})` : said(o.name))))
    : el("input", { name, autocomplete: "off", dir: "auto" });
  return el("label", { class: "field" },
    el("span", {}, el("bdi", {}, f.name), " ", el("small", {}, t(f.required ? "required" : "optional"))), control);
}
