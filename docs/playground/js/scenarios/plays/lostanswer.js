// A mobile connection breaks after the service has applied a change.

import { newKey } from "../../api/api.js";
import { expect } from "../player.js";

const credit = { product_id: 1, qty: 1 };

export const lostAnswer = {
  name: "lostAnswer", sign: "lost", needs: [],
  steps: [
    {
      name: "adds", on: "a",
      async does({ a, state }) {
        state.key = newKey();
        const answer = await a.add(credit, { key: state.key, lose: true });
        expect(answer, answer.status === 0);
        return ["lostAnswer_noAnswer"];
      },
    },
    {
      name: "repeats", on: "a", proves: true,
      async does({ a, state }) {
        const answer = await a.add(credit, { key: state.key });
        expect(answer, answer.ok && answer.header("Idempotency-Replayed") === "true" && answer.data.count === 1);
        return ["lostAnswer_replayed", { version: answer.data.version }];
      },
    },
    {
      name: "clicks", on: "a",
      async does({ a }) {
        const answer = await a.add(credit);
        expect(answer, answer.ok && answer.data.count === 2);
        return ["lostAnswer_counted", { version: answer.data.version }];
      },
    },
  ],
};
