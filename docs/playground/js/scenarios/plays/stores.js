// Scenarios of a store: its stock, prices and coupons, and what a merchant reads.

import { call } from "../../api/api.js";
import { copyProduct, demo, setProduct } from "../../demo.js";
import { money } from "../../page/language.js";
import { credits, layla, proof, step, sure, tickets } from "../step.js";

/** lastItem: two shoppers want the last ticket. Nothing is reserved; the order takes the stock. */
export const lastItem = {
  name: "lastItem", sign: "bolt", needs: ["backstage"],
  steps: [
    step("both", "b", async ({ a, b, state }) => {
      state.ticket = await copyProduct(2);
      await setProduct(state.ticket, { stock: 1 });
      for (const cart of [a, b]) await sure(cart.add({ product_id: state.ticket, qty: 1 }));
      return ["inBoth"];
    }),
    proof("late", "b", async ({ a, b, state }) => {
      await sure(a.checkOut());
      await setProduct(state.ticket, { stock: 0 });
      await a.clear();
      const { data } = await sure(b.checkOut(), ({ code }) => code === "cart_invalid");
      await b.load();
      return ["tooLate", { message: data.issues[0].message }, data.issues[0].code];
    }),
  ],
};

const [before, after] = [49.5, 59.5];

/** price: the merchant raises a price while the product is in a cart. */
export const price = {
  name: "price", sign: "store", needs: ["backstage"],
  steps: [
    step("raises", "a", async ({ a }) => {
      const credit = await copyProduct(1);
      await sure(a.add({ product_id: credit, qty: 1 }), ({ ok, data }) => ok && data.total === before);
      await setProduct(credit, { price: after });
      const { data } = await sure(a.load(), ({ ok, data }) => ok && data.total === after);
      return ["now", { price: () => money(after, data.currency), version: data.version }];
    }),
    proof("checks", "a", async ({ a }) => {
      const { data } = await sure(a.checkOut(), ({ ok, data }) => ok && data.warnings.some(({ code }) => code === "price_changed"));
      return ["warned", { message: data.warnings[0].message }, "price_changed"];
    }),
    step("accepts", "a", async ({ a }) => {
      await a.checkOut();
      await sure(a.fixAll(), ({ ok, data }) => ok && data.warnings.length === 0);
      return ["accepted"];
    }),
  ],
};

/** coupon: coupons that are refused, and one that applies. */
export const coupon = {
  name: "coupon", sign: "tag", needs: [],
  steps: [
    step("minimum", "a", async ({ a }) => {
      await a.add(tickets(1));
      const { code, message } = await sure(a.redeem("FIVE"), ({ code }) => code === "coupon_minimum");
      return ["refused", { message }, code];
    }),
    proof("enough", "a", async ({ a }) => {
      await sure(a.add(tickets(1)));
      const { data } = await sure(a.redeem("FIVE"), ({ ok, data }) => ok && data.discount_amount === 5);
      return ["counts", { total: () => money(data.total, data.currency) }];
    }),
    step("revives", "a", async ({ a }) => {
      const { data } = await sure(a.setQuantity(a.now.items[0], 1), ({ ok, data }) => ok && data.discount_amount === 0 && data.coupon);
      const { message, code } = data.coupon.issue;
      return ["waits", { message }, code];
    }),
  ],
};

/** abandoned returns the line of the customer, if there is one, and what is known of guests. */
async function abandoned(isTrue) {
  const read = ({ text }) => {
    const lines = text.trim().split("\n").map((line) => JSON.parse(line));
    return { hers: lines.find(({ customer }) => customer === demo.actors[0].id), guests: lines.at(-1).guests };
  };
  return read(await sure(call("GET", "/playground/abandoned?idle=1s&within=24h", { from: "merchant" }),
    (answer) => answer.status === 200 && isTrue(read(answer))));
}

/** atRest: a merchant looks for carts that nobody has used for a while, to write to their owners. */
export const atRest = {
  name: "atRest", sign: "store", needs: ["actors", "backstage"], lends: { a: layla },
  steps: [
    step("leave", "a", async ({ a, b }) => {
      await a.clear();
      await sure(a.add(credits(2)));
      await sure(b.add(tickets(1)));
      await new Promise((done) => setTimeout(done, 1500));
      return ["left"];
    }),
    proof("lists", "", async () => {
      const { hers, guests } = await abandoned(({ hers, guests }) => hers?.value === 9900 && guests.carts > 0);
      return ["listed", { value: () => money(hers.value / 100, "SAR"), n: guests.carts }];
    }),
    step("buys", "a", async ({ a }) => {
      await sure(a.clear(), ({ ok, data }) => ok && data.count === 0);
      await abandoned(({ hers }) => !hers);
      return ["gone"];
    }),
  ],
};

function readLong(query, isTrue) {
  const headers = { Authorization: `Bearer ${demo.long_list_token}` };
  return sure(call("GET", `/subscriptions${query}`, { headers, from: "merchant" }), isTrue);
}

/** deepPage: page 1,000 of a merchant's subscriptions, by number and by link. */
export const deepPage = {
  name: "deepPage", sign: "search", needs: ["longList"],
  steps: [
    step("jumps", "", async ({ state }) => {
      const { data } = await readLong("?page=1000", ({ ok, data }) => ok && data.current_page === 1000);
      state.next = new URL(data.next_page_url, document.baseURI).search;
      return ["rows", { from: data.from, to: data.to }];
    }),
    proof("follows", "", async ({ state }) => {
      const { data } = await readLong(state.next, ({ ok, data }) => ok && data.current_page === 1001);
      return ["linked", { from: data.from, to: data.to }];
    }),
    step("filters", "", async ({ state }) => {
      const { message, code } = await readLong(`${state.next}&status=active`, ({ code }) => code === "invalid_parameter");
      return ["foreign", { message }, code];
    }),
  ],
};
