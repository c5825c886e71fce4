// One customer has a cart open on two devices. One of them follows what the other does, also across a lost connection.

import { setNetwork } from "../../api/live.js";
import { demo } from "../../demo.js";
import { expect, Surprise } from "../player.js";

const jwt = () => ({ jwt: demo.actors[1].jwt });

/** shows waits until a cart has a version, without asking for it. */
async function shows(cart, version) {
  for (const end = Date.now() + 10_000; cart.now?.version !== version;) {
    if (Date.now() > end) throw new Surprise({ status: 0 });
    await new Promise((done) => setTimeout(done, 20));
  }
}

export const live = {
  name: "live", sign: "live", needs: ["actors"], live: "b",
  lends: { a: jwt, b: jwt },
  steps: [
    {
      name: "both", on: "a",
      async does({ a, b }) {
        await a.clear();
        const answer = await a.add({ product_id: 1, qty: 1 });
        expect(answer, answer.ok);
        await b.load();
        return ["live_follows", { version: answer.data.version }];
      },
    },
    {
      name: "adds", on: "a", proves: true,
      async does({ a, b }) {
        const answer = await a.add({ product_id: 2, qty: 2 });
        expect(answer, answer.ok);
        await shows(b, answer.data.version);
        return ["live_shown", { n: b.now.count }];
      },
    },
    {
      name: "breaks", on: "a",
      async does({ a, b }) {
        setNetwork(false);
        await a.setQuantity(a.now.items[0], 3);
        const answer = await a.redeem("TEN");
        expect(answer, answer.ok);
        return ["live_missed", { version: answer.data.version, old: b.now.version }];
      },
    },
    {
      name: "returns", on: "b",
      async does({ a, b }) {
        setNetwork(true);
        await shows(b, a.now.version);
        return ["live_current", { version: b.now.version }];
      },
    },
  ],
};
