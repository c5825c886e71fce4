// A shopper takes a cart from a phone to a laptop, with a link.

import { newKey } from "../../api/api.js";
import { expect } from "../player.js";

export const handover = {
  name: "handover", sign: "laptop", needs: ["backstage"],
  steps: [
    {
      name: "links", on: "a",
      async does({ a, state }) {
        await a.add({ product_id: 1, qty: 1 });
        await a.add({ product_id: 2, qty: 2 });
        const answer = await a.handOver();
        expect(answer, answer.ok);
        state.code = answer.data.code;
        return ["handover_linked"];
      },
    },
    {
      name: "takes", on: "b", proves: true,
      async does({ b, state }) {
        const shown = await b.preview(state.code);
        expect(shown, shown.ok && shown.data.count === 3);
        const key = newKey();
        const lost = await b.takeOver(state.code, { key, lose: true });
        expect(lost, lost.status === 0);
        const answer = await b.takeOver(state.code, { key });
        expect(answer, answer.ok && answer.data.count === 3);
        return ["handover_moved", { n: answer.data.count }];
      },
    },
    {
      name: "looks", on: "a",
      async does({ a }) {
        const answer = await a.load();
        expect(answer, (answer.ok || answer.status === 304) && a.now.count === 0); // 304: the language changed meanwhile
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
