// A shopper takes a cart from a phone to a laptop, with a link.

import { newKey } from "../../api/api.js";
import { expect } from "../player.js";

export const handover = {
  name: "handover", sign: "laptop", needs: ["backstage"],
  steps: [
    {
      name: "fills", on: "a",
      async does({ a }) {
        await a.add({ product_id: 1, qty: 1 });
        const answer = await a.add({ product_id: 2, qty: 2 });
        expect(answer, answer.ok);
        return ["handover_filled", { n: answer.data.count }];
      },
    },
    {
      name: "links", on: "a",
      async does({ a, state }) {
        const answer = await a.handOver();
        expect(answer, answer.ok);
        state.code = answer.data.code;
        return ["handover_linked"];
      },
    },
    {
      name: "opens", on: "b",
      async does({ b, state }) {
        const answer = await b.preview(state.code);
        expect(answer, answer.ok && answer.data.count === 3);
        return ["handover_shown", { n: answer.data.count }];
      },
    },
    {
      name: "takes", on: "b",
      async does({ b, state }) {
        state.key = newKey();
        const answer = await b.takeOver(state.code, { key: state.key, lose: true });
        expect(answer, answer.status === 0);
        return ["handover_noAnswer"];
      },
    },
    {
      name: "repeats", on: "b",
      async does({ b, state }) {
        const answer = await b.takeOver(state.code, { key: state.key });
        expect(answer, answer.ok && answer.data.count === 3);
        return ["handover_moved", { n: answer.data.count }];
      },
    },
    {
      name: "looks", on: "a",
      async does({ a }) {
        const answer = await a.load();
        expect(answer, answer.ok && answer.data.count === 0);
        return ["handover_empty"];
      },
    },
    {
      name: "again", on: "a",
      async does({ a, state }) {
        const answer = await a.takeOver(state.code);
        expect(answer, answer.status === 404);
        return ["handover_used", {}, answer.code];
      },
    },
  ],
};
