// The merchant raises a price while the product is in a cart.

import { copyProduct, setProduct } from "../../demo.js";
import { money } from "../../page/language.js";
import { expect } from "../player.js";

const [before, after] = [49.5, 59.5];

export const price = {
  name: "price", sign: "store", needs: ["backstage"],
  steps: [
    {
      name: "raises", on: "a",
      async does({ a }) {
        const credit = await copyProduct(1);
        const added = await a.add({ product_id: credit, qty: 1 });
        expect(added, added.ok && added.data.total === before);
        await setProduct(credit, { price: after });
        const answer = await a.load();
        expect(answer, answer.ok && answer.data.total === after);
        return ["price_now", { price: () => money(after, answer.data.currency), version: answer.data.version }];
      },
    },
    {
      name: "checks", on: "a", proves: true,
      async does({ a }) {
        const answer = await a.checkOut();
        expect(answer, answer.ok && answer.data.warnings.some((w) => w.code === "price_changed"));
        return ["price_warned", { message: answer.data.warnings[0].message }, "price_changed"];
      },
    },
    {
      name: "accepts", on: "a",
      async does({ a }) {
        await a.checkOut();
        const answer = await a.fixAll();
        expect(answer, answer.ok && answer.data.warnings.length === 0);
        return ["price_accepted"];
      },
    },
  ],
};
