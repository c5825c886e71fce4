// A phone without a network keeps changes, sends them as one list, and repeats the list when the response is lost.

import { newKey } from "../../api/api.js";
import { expect } from "../player.js";

const ops = [
  { op: "add", product_id: 1, qty: 2 },
  { op: "edit", item: "2", quantity: 9 }, // the store has 3
  { op: "edit", item: "2", quantity: 3 },
];

export const offline = {
  name: "offline", sign: "phone", needs: [],
  steps: [
    {
      name: "sends", on: "a",
      async does({ a, state }) {
        await a.add({ product_id: 2, qty: 1 });
        state.key = newKey();
        const answer = await a.apply(ops, { key: state.key, lose: true });
        expect(answer, answer.status === 0);
        return ["offline_noAnswer"];
      },
    },
    {
      name: "repeats", on: "a", proves: true,
      async does({ a, state }) {
        const answer = await a.apply(ops, { key: state.key });
        const [credits, refused, tickets] = answer.data?.outcomes ?? [];
        expect(answer, answer.header("Idempotency-Replayed") === "true" && answer.data.count === 5 &&
          credits.item_id === "1" && refused.code === "insufficient_stock" && tickets.item_id === "2");
        return ["offline_replayed", { message: refused.message, n: ops.length - 1, version: answer.data.version }];
      },
    },
  ],
};
