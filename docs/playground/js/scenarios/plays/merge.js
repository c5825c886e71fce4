// A guest with a full cart logs in as a customer who already has one.

import { demo } from "../../demo.js";
import { expect } from "../player.js";

const ticket = 2; // three in stock
let told;         // the merge that the login has reported

export const merge = {
  name: "merge", sign: "merge", needs: ["actors"],
  lends: { b: () => ({ jwt: demo.actors[0].jwt }) },
  steps: [
    {
      name: "customer", on: "b",
      async does({ b }) {
        await b.clear();
        const answer = await b.add({ product_id: ticket, qty: 2 });
        expect(answer, answer.ok);
        return ["merge_customerHas", { n: answer.data.count }];
      },
    },
    {
      name: "guest", on: "a",
      async does({ a }) {
        await a.add({ product_id: 1, qty: 1 });
        const answer = await a.add({ product_id: ticket, qty: 2 });
        expect(answer, answer.ok);
        return ["merge_guestHas", { n: answer.data.count }];
      },
    },
    {
      name: "login", on: "a",
      async does({ a, deviceA }) {
        const answer = await deviceA.become(demo.actors[0].jwt);
        const report = answer.data?.merge;
        expect(answer, report?.adjusted.length === 1);
        told = report.id;
        const [{ requested, kept, code }] = report.adjusted;
        return ["merge_cut", { requested, kept }, code];
      },
    },
    {
      name: "again", on: "a",
      async does({ a }) {
        const answer = await a.load();
        expect(answer, answer.status === 304 || answer.ok && answer.data.merge?.id === told);
        return ["merge_once"];
      },
    },
    {
      name: "other", on: "b",
      async does({ b }) {
        const answer = await b.load();
        expect(answer, answer.ok && answer.data.items.length === 2);
        return ["merge_seen", { n: answer.data.count, version: answer.data.version }];
      },
    },
    {
      name: "unchanged", on: "b",
      async does({ b }) {
        const answer = await b.load();
        expect(answer, answer.status === 304);
        return ["merge_notModified"];
      },
    },
  ],
};
