// The products of a device: a strip of tiles. A product with options has a dialog.

import { el, icon } from "../page/dom.js";
import { money, number, onLanguage, said, t } from "../page/language.js";
import { announce } from "../page/notices.js";
import { openForm } from "./form.js";
import { picture, pictureOf } from "./picture.js";
import { currency, products } from "./sample.js";

const known = new Map(); // product → its price and stock, as any response had them last

export class Shelf {
  #seen = null; // the cart whose products are known

  constructor(device) {
    this.device = device;
    this.cart = device.cart;
    this.tiles = device.part("tiles");
    this.cart.addEventListener("change", () => this.#update());
    onLanguage(() => {
      this.tiles.replaceChildren(...products.map((p) => this.#tile(p)));
      this.#update();
    });
  }

  #tile(product) {
    const name = said(product.name);
    return el("li", { class: "tile", "data-product": product.id },
      el("div", { class: "shown" }, picture(pictureOf(product), "large"), el("span", { class: "in-cart", hidden: true })),
      el("button", {
        class: "open", "aria-haspopup": "dialog", "aria-label": t("options", { name }), onclick: () => this.#open(product),
      }, el("bdi", {}, name)),
      el("p", { class: "price" }),
      el("button", {
        class: "add", "aria-label": t("addOf", { name }), onclick: ({ currentTarget }) => this.#quickAdd(product, currentTarget),
      }, icon("plus"), t("add")));
  }

  /** #quickAdd adds a product at once, or opens its dialog if something must be chosen. */
  async #quickAdd(product, button) {
    if (product.plans || product.fields?.some((f) => f.required)) return this.#open(product);
    if (button.ariaBusy === "true") return; // a double click adds once
    button.ariaBusy = "true"; // a disabled button would lose the focus
    const answer = await this.#add(product, { qty: product.least ?? 1 });
    button.ariaBusy = "false";
    if (answer.ok) announce(t("added", { name: said(product.name) }));
  }

  #open(product) {
    const name = said(product.name);
    openForm(this.device, {
      name, product, call: (members) => this.#add(product, members), done: () => announce(t("added", { name })),
    });
  }

  #add(product, members) {
    return this.cart.add({ product_id: product.id, ...members });
  }

  /** #update shows how many of each product are in the cart, and their last known price and stock. */
  #update() {
    if (this.#seen !== this.cart.now) this.#learn();
    for (const product of products) {
      const tile = this.tiles.querySelector(`[data-product="${product.id}"]`);
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
