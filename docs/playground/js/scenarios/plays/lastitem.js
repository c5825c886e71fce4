// Two shoppers want the last ticket. Nothing is reserved; the order takes the stock.

import { copyProduct, setProduct } from "../../demo.js";
import { expect } from "../player.js";

export const lastItem = {
  name: "lastItem", sign: "bolt", needs: ["backstage"],
  steps: [
    {
      name: "one", on: "a",
      async does({ a, state }) {
        state.ticket = await copyProduct(2);
        await setProduct(state.ticket, { stock: 1 });
        const answer = await a.add({ product_id: state.ticket, qty: 1 });
        expect(answer, answer.ok);
        return ["lastItem_inCart"];
      },
    },
    {
      name: "two", on: "b",
      async does({ b, state }) {
        const answer = await b.add({ product_id: state.ticket, qty: 1 });
        expect(answer, answer.ok);
        return ["lastItem_both"];
      },
    },
    {
      name: "more", on: "b",
      async does({ b, state }) {
        const answer = await b.add({ product_id: state.ticket, qty: 1 });
        expect(answer, answer.code === "insufficient_stock");
        return ["lastItem_refused", { message: answer.message }, answer.code];
      },
    },
    {
      name: "order", on: "a",
      async does({ a, state }) {
        const answer = await a.checkOut();
        expect(answer, answer.ok);
        await setProduct(state.ticket, { stock: 0 });
        await a.clear();
        return ["lastItem_ordered"];
      },
    },
    {
      name: "late", on: "b",
      async does({ b }) {
        const answer = await b.checkOut();
        expect(answer, answer.code === "cart_invalid");
        await b.load();
        return ["lastItem_tooLate", { message: answer.data.issues[0].message }, answer.data.issues[0].code];
      },
    },
  ],
};
