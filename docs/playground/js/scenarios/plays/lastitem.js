// Two shoppers want the last ticket. Nothing is reserved; the order takes the stock.

import { setProduct } from "../../demo.js";
import { expect } from "../player.js";

const ticket = 2;

export const lastItem = {
  name: "lastItem", sign: "bolt", needs: ["backstage"],
  products: { [ticket]: { stock: 3 } },
  steps: [
    {
      name: "one", on: "a",
      async does({ a }) {
        await setProduct(ticket, { stock: 1 });
        const answer = await a.add({ product_id: ticket, qty: 1 });
        expect(answer, answer.ok);
        return ["lastItem_inCart"];
      },
    },
    {
      name: "two", on: "b",
      async does({ b }) {
        const answer = await b.add({ product_id: ticket, qty: 1 });
        expect(answer, answer.ok);
        return ["lastItem_both"];
      },
    },
    {
      name: "more", on: "b",
      async does({ b }) {
        const answer = await b.add({ product_id: ticket, qty: 1 });
        expect(answer, answer.code === "insufficient_stock");
        return ["lastItem_refused", { message: answer.message }, answer.code];
      },
    },
    {
      name: "order", on: "a",
      async does({ a }) {
        const answer = await a.validate();
        expect(answer, answer.ok);
        await setProduct(ticket, { stock: 0 });
        await a.clear();
        return ["lastItem_ordered"];
      },
    },
    {
      name: "late", on: "b",
      async does({ b }) {
        const answer = await b.validate();
        expect(answer, answer.code === "cart_invalid");
        await b.load();
        return ["lastItem_tooLate", { message: answer.data.issues[0].message }, answer.data.issues[0].code];
      },
    },
  ],
};
