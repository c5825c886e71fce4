// Two shoppers want the last ticket. Nothing is reserved; the order takes the stock.

import { copyProduct, setProduct } from "../../demo.js";
import { expect } from "../player.js";

export const lastItem = {
  name: "lastItem", sign: "bolt", needs: ["backstage"],
  steps: [
    {
      name: "both", on: "b",
      async does({ a, b, state }) {
        state.ticket = await copyProduct(2);
        await setProduct(state.ticket, { stock: 1 });
        for (const cart of [a, b]) {
          const answer = await cart.add({ product_id: state.ticket, qty: 1 });
          expect(answer, answer.ok);
        }
        return ["lastItem_inBoth"];
      },
    },
    {
      name: "late", on: "b", proves: true,
      async does({ a, b, state }) {
        const ordered = await a.checkOut();
        expect(ordered, ordered.ok);
        await setProduct(state.ticket, { stock: 0 });
        await a.clear();
        const answer = await b.checkOut();
        expect(answer, answer.code === "cart_invalid");
        await b.load();
        return ["lastItem_tooLate", { message: answer.data.issues[0].message }, answer.data.issues[0].code];
      },
    },
  ],
};
