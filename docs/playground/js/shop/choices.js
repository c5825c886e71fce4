// The inputs for what a shopper chooses of a product: its plan and its fields. Their names
// are those of the request fields.

import { el } from "../page/dom.js";
import { money, said, t } from "../page/language.js";
import { currency } from "./sample.js";

/** choices draws the inputs of a product. plan is the id of the plan that is checked. */
export function choices(product, plan = product.plans?.[0].id) {
  return [product.plans && plans(product, plan), ...(product.fields ?? []).map(field)];
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
