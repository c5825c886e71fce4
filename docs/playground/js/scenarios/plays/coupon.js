// Coupons that are refused, and one that applies.

import { money } from "../../page/language.js";
import { expect } from "../player.js";

export const coupon = {
  name: "coupon", sign: "tag", needs: [],
  steps: [
    {
      name: "minimum", on: "a",
      async does({ a }) {
        await a.add({ product_id: 2, qty: 1 });
        const answer = await a.redeem("FIVE");
        expect(answer, answer.code === "coupon_minimum");
        return ["coupon_refused", { message: answer.message }, answer.code];
      },
    },
    {
      name: "enough", on: "a", proves: true,
      async does({ a }) {
        const added = await a.add({ product_id: 2, qty: 1 });
        const answer = await a.redeem("FIVE");
        expect(answer, added.ok && answer.ok && answer.data.discount_amount === 5);
        return ["coupon_counts", { total: () => money(answer.data.total, answer.data.currency) }];
      },
    },
    {
      name: "revives", on: "a",
      async does({ a }) {
        const answer = await a.setQuantity(a.now.items[0], 1);
        expect(answer, answer.ok && answer.data.discount_amount === 0 && answer.data.coupon);
        return ["coupon_waits", { message: answer.data.coupon.issue.message }, answer.data.coupon.issue.code];
      },
    },
  ],
};
