// A guest with a full cart logs in as a customer who already has one.

import { demo } from "../../demo.js";
import { expect } from "../player.js";

const ticket = 2; // three in stock

export const merge = {
  name: "merge", sign: "merge", needs: ["actors"],
  lends: { b: () => ({ jwt: demo.actors[0].jwt }) },
  steps: [
    {
      name: "fills", on: "a",
      async does({ a, b }) {
        await b.clear();
        const hers = await b.add({ product_id: ticket, qty: 2 });
        expect(hers, hers.ok);
        await a.add({ product_id: 1, qty: 1 });
        const guests = await a.add({ product_id: ticket, qty: 2 });
        expect(guests, guests.ok);
        return ["merge_filled", { n: hers.data.count, guest: guests.data.count }];
      },
    },
    {
      name: "login", on: "a", proves: true,
      async does({ deviceA, state }) {
        const answer = await deviceA.become(demo.actors[0].jwt);
        const report = answer.data?.merge;
        expect(answer, report?.adjusted.length === 1);
        state.merge = report.id;
        const [{ requested, kept, code }] = report.adjusted;
        return ["merge_cut", { requested, kept }, code];
      },
    },
    {
      name: "again", on: "a",
      async does({ a, b, state }) {
        const again = await a.load();
        expect(again, again.status === 304 || again.ok && again.data.merge?.id === state.merge);
        const answer = await b.load();
        expect(answer, (answer.ok || answer.status === 304) && b.now.count === a.now.count); // 304: the language changed meanwhile
        return ["merge_once"];
      },
    },
  ],
};
