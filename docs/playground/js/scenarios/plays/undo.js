// A customer logs in on a friend's phone, whose cart merges into hers, and undoes that.

import { demo } from "../../demo.js";
import { expect } from "../player.js";

const layla = () => demo.actors[0].jwt;

export const undo = {
  name: "undo", sign: "undo", needs: ["actors"],
  lends: { b: () => ({ jwt: layla() }) },
  steps: [
    {
      name: "login", on: "a",
      async does({ a, b, deviceA, state }) {
        await b.clear();
        await b.add({ product_id: 1, qty: 1 });
        await a.add({ product_id: 1, qty: 2 });
        await a.add({ product_id: 2, qty: 1 });
        const answer = await deviceA.become(layla());
        expect(answer, answer.data?.merge?.lines === 2 && answer.data.count === 4);
        state.merge = answer.data.merge.id;
        return ["undo_merged", { n: answer.data.count }];
      },
    },
    {
      name: "undoes", on: "a", proves: true,
      async does({ a, state }) {
        const lost = await a.undoMerge(state.merge, { lose: true });
        expect(lost, lost.status === 0);
        const answer = await a.undoMerge(state.merge);
        expect(answer, answer.ok && answer.data.count === 1 && answer.data.undone.adjusted.length === 0);
        return ["undo_undone"];
      },
    },
    {
      name: "again", on: "a",
      async does({ a }) {
        const answer = await a.load();
        expect(answer, answer.status === 304 || (answer.ok && !answer.merge && answer.data.count === 1));
        return ["undo_notAgain"];
      },
    },
    {
      name: "logout", on: "a",
      async does({ deviceA }) {
        const answer = await deviceA.become("");
        expect(answer, answer.ok && answer.data.count === 3);
        return ["undo_returned", { n: answer.data.count }];
      },
    },
  ],
};
