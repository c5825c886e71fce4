// A merchant looks for carts that nobody has used for a while, to write to their owners.

import { call } from "../../api/api.js";
import { demo } from "../../demo.js";
import { money } from "../../page/language.js";
import { expect } from "../player.js";

/** list returns the answer, the line of the customer, and what is known of guests. */
async function list() {
  const answer = await call("GET", "/playground/abandoned?idle=1s&within=24h", { from: "merchant" });
  expect(answer, answer.status === 200);
  const lines = answer.text.trim().split("\n").map((line) => JSON.parse(line));
  return { answer, hers: lines.find(({ customer }) => customer === demo.actors[0].id), guests: lines.at(-1).guests };
}

export const atRest = {
  name: "atRest", sign: "store", needs: ["actors", "backstage"],
  lends: { a: () => ({ jwt: demo.actors[0].jwt }) },
  steps: [
    {
      name: "leave", on: "a",
      async does({ a, b }) {
        await a.clear();
        const added = [await a.add({ product_id: 1, qty: 2 }), await b.add({ product_id: 2, qty: 1 })];
        for (const answer of added) expect(answer, answer.ok);
        await new Promise((done) => setTimeout(done, 1500));
        return ["atRest_left"];
      },
    },
    {
      name: "lists", proves: true,
      async does() {
        const { answer, hers, guests } = await list();
        expect(answer, hers?.value === 9900 && guests.carts > 0);
        return ["atRest_listed", { value: () => money(hers.value / 100, "SAR"), n: guests.carts }];
      },
    },
    {
      name: "buys", on: "a",
      async does({ a }) {
        const bought = await a.clear();
        expect(bought, bought.ok && bought.data.count === 0);
        const { answer, hers } = await list();
        expect(answer, !hers);
        return ["atRest_gone"];
      },
    },
  ],
};
