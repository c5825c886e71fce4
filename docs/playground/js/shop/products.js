// The product list: one card for each sample product. Each card is a form.

import { add, events, refusedByRule, state } from "./cart.js";
import { choices } from "./choices.js";
import { byId, el, icon } from "../page/dom.js";
import { clearErrors, refill, showErrors } from "../page/forms.js";
import { counted, money, number, onLanguage, said, t } from "../page/language.js";
import { announce } from "../page/notices.js";
import { currency, products } from "./sample.js";
import { stepper } from "../page/stepper.js";

export function startProducts() {
  draw();
  onLanguage(draw);
  events.addEventListener("change", countInCart);
}

/** draw rebuilds the cards and keeps their input. */
function draw() {
  const typed = Array.from(document.querySelectorAll("#products form"), (form) => [form.dataset.product, new FormData(form)]);
  byId("products").replaceChildren(...products.map(card));
  for (const [id, values] of typed) refill(document.querySelector(`[data-product="${id}"]`), values);
  countInCart();
}

function card(product) {
  const form = el("form", { class: "card product", noValidate: true, "data-product": product.id, "aria-label": said(product.name) },
    el("div", { class: "art", "data-art": product.slug }, icon(product.slug, "drawing")),
    el("div", { class: "about" },
      el("h3", {}, el("bdi", {}, said(product.name))),
      el("p", { class: "price" }, priceOf(product)),
      el("p", { class: "facts" }, stockOf(product), boundsOf(product), el("span", { class: "tag good in-cart", hidden: true }))),
    choices(product),
    el("details", { class: "more" },
      el("summary", {}, t("note")),
      el("textarea", { name: "notice", rows: 2, "aria-label": t("note"), dir: "auto" })),
    el("div", { class: "row buy" },
      stepper({ name: "qty", of: said(product.name), value: product.least ?? 1, by: product.step, key: `p${product.id}` }),
      el("button", { class: sellable(product) ? "primary" : "" }, t(sellable(product) ? "add" : "tryAnyway"))));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(form, product);
  });
  return form;
}

async function submit(form, product) {
  clearErrors(form);
  const button = form.querySelector(".buy > button");
  button.disabled = true; // a double click adds once
  const answer = await add(additionOf(form, product));
  button.disabled = false;
  if (answer.ok) announce(t("added", { name: said(product.name) }));
  else if (refusedByRule(answer)) showErrors(form, answer.errors, answer.message);
}

/** additionOf returns the body of POST /cart/add without empty inputs. */
function additionOf(form, product) {
  const values = new FormData(form);
  const qty = values.get("qty").trim();
  const body = { product_id: product.id, qty: Number.isNaN(Number(qty)) ? qty : Number(qty) };
  const plan = values.get("subscription_plan");
  if (plan) body.subscription_plan = Number(plan);
  const fields = (product.fields ?? []).map((f) => [f.name, values.get(`fields.${f.name}`)]).filter(([, value]) => value);
  if (fields.length > 0) body.fields = Object.fromEntries(fields);
  if (values.get("notice")) body.notice = values.get("notice");
  return body;
}

function priceOf(product) {
  if (!product.plans) return money(product.price, currency);
  return t("from", { price: money(Math.min(...product.plans.map((p) => p.price)), currency) });
}

function sellable(product) {
  return !product.inactive && product.stock !== 0;
}

function stockOf(product) {
  if (product.inactive) return el("span", { class: "tag bad" }, t("notSold"));
  if (product.stock === 0) return el("span", { class: "tag bad" }, t("outOfStock"));
  if (product.stock) return el("span", { class: "tag warm" }, t("onlyLeft", { n: number(product.stock) }));
  return el("span", { class: "tag" }, t("inStock"));
}

function boundsOf(product) {
  if (!product.least) return undefined;
  const [least, most, step] = [product.least, product.most, product.step].map((n) => n && number(n));
  return el("span", { class: "tag" }, step ? t("steps", { least, step }) : t("bounds", { least, most }));
}

function countInCart() {
  for (const form of document.querySelectorAll("#products form")) {
    const n = (state.cart?.items ?? []).filter((item) => String(item.product_id) === form.dataset.product)
      .reduce((sum, item) => sum + item.quantity, 0);
    const tag = form.querySelector(".in-cart");
    tag.hidden = n === 0;
    tag.textContent = counted("inCart", n);
  }
}
