// The products of a device: a strip of tiles, and a form for the chosen one.

import { el, icon } from "../page/dom.js";
import { refill, submit } from "../page/forms.js";
import { money, number, onLanguage, said, t } from "../page/language.js";
import { announce } from "../page/notices.js";
import { productForm } from "./choices.js";
import { picture, pictureOf } from "./picture.js";
import { currency, products } from "./sample.js";

const known = new Map(); // product → its price and stock, as any response had them last

export class Shelf {
  #seen = null; // the cart whose products are known
  #chosen = null; // the product whose form is open

  constructor(device) {
    this.device = device;
    this.cart = device.cart;
    this.tiles = device.part("tiles");
    this.place = device.part("product-form");
    this.cart.addEventListener("change", () => this.#update());
    this.cart.addEventListener("forget", () => this.#close());
    onLanguage(() => this.#draw());
  }

  #draw() {
    this.tiles.replaceChildren(...products.map((p) => this.#tile(p)));
    this.#update();
    if (!this.#chosen) return;
    const typed = new FormData(this.place.firstElementChild);
    this.#show(this.#chosen);
    refill(this.place.firstElementChild, typed);
  }

  #tile(product) {
    const name = said(product.name);
    return el("li", { class: "tile", "data-product": product.id },
      el("div", { class: "shown" }, picture(pictureOf(product), "large"), el("span", { class: "in-cart", hidden: true })),
      el("button", {
        class: "open", "aria-expanded": String(this.#chosen === product), "aria-label": t("options", { name }),
        onclick: () => (this.#chosen === product ? this.#close() : this.#open(product)),
      }, el("bdi", {}, name)),
      el("p", { class: "price" }),
      el("button", {
        class: "add", "aria-label": t("addOf", { name }), onclick: ({ currentTarget }) => this.#quickAdd(product, currentTarget),
      }, icon("plus"), t("add")));
  }

  /** #quickAdd adds a product at once, or opens its form if something must be chosen. */
  async #quickAdd(product, button) {
    if (product.plans || product.fields?.some((f) => f.required)) return this.#open(product);
    this.#close();
    if (button.ariaBusy === "true") return; // a double click adds once
    button.ariaBusy = "true"; // a disabled button would lose the focus
    const answer = await this.cart.add({ product_id: product.id, qty: product.least ?? 1 });
    button.ariaBusy = "false";
    if (answer.ok) announce(t("added", { name: said(product.name) }));
  }

  #open(product) {
    this.#show(product);
    this.place.querySelector("input:checked, input, select, textarea").focus();
    this.place.scrollIntoView({ block: "nearest" });
  }

  #show(product) {
    this.#chosen = product;
    this.place.replaceChildren(this.#form(product));
    this.#markOpen();
  }

  /** #close closes the form. If the focus was in it, it returns to the product's tile. */
  #close() {
    if (!this.#chosen) return;
    const here = this.place.contains(document.activeElement);
    const tile = this.#tileOf(this.#chosen);
    this.#chosen = null;
    this.place.replaceChildren();
    this.#markOpen();
    if (here) tile.querySelector(".open").focus();
  }

  #tileOf(product) {
    return this.tiles.querySelector(`[data-product="${product.id}"]`);
  }

  #markOpen() {
    for (const product of products) this.#tileOf(product).querySelector(".open").ariaExpanded = String(product === this.#chosen);
  }

  #form(product) {
    const name = said(product.name);
    const form = productForm({ class: "choose", "aria-label": name }, {
      product, submit: t("add"), submitted: () => this.#submit(form, product), canceled: () => this.#close(),
      quantity: { name: "qty", of: name, value: product.least ?? 1, by: product.step, key: `${this.device.id}-p${product.id}` },
    });
    form.prepend(el("p", { class: "name" }, el("bdi", {}, name)));
    return form;
  }

  async #submit(form, product) {
    if (!await submit(form, () => this.cart.add(additionOf(form, product)))) return;
    if (form.isConnected) this.#close(); // unless another product is open meanwhile
    announce(t("added", { name: said(product.name) }));
  }

  /** #update shows how many of each product are in the cart, and their last known price and stock. */
  #update() {
    if (this.#seen !== this.cart.now) this.#learn();
    for (const product of products) {
      const tile = this.#tileOf(product);
      const lines = (this.cart.now?.items ?? []).filter((item) => item.product_id === product.id);
      const n = lines.reduce((sum, item) => sum + item.quantity, 0);
      const badge = tile.querySelector(".in-cart");
      badge.hidden = n === 0;
      badge.textContent = t("inCart", { n: number(n) });
      const latest = { ...product, ...known.get(product.id) };
      tile.querySelector(".price").replaceChildren(el("span", {}, priceOf(latest)), factOf(latest));
    }
  }

  #learn() {
    this.#seen = this.cart.now;
    for (const { product: { id, price, stock } } of this.cart.now?.items ?? []) {
      known.set(id, { price: price.actual, stock: stock.unlimited ? undefined : stock.available });
    }
  }
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

/** factOf is what limits a product, if anything does. */
function factOf(product) {
  const [least, most, step, stock] = [product.least, product.most, product.step, product.stock].map((n) => n && number(n));
  const fact = (text, tone = "") => el("span", { class: `fact ${tone}` }, text);
  if (product.inactive) return fact(t("notSold"), "bad");
  if (product.stock === 0) return fact(t("outOfStock"), "bad");
  if (stock) return fact(t("onlyLeft", { n: stock }), "warm");
  if (step) return fact(t("steps", { least, step }));
  return least ? fact(t("bounds", { least, most })) : "";
}
