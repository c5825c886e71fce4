// One customer has two tabs open. The second change must not silently undo the first.

import { demo } from "../../demo.js";
import { expect } from "../player.js";

const jwt = () => ({ jwt: demo.actors[1].jwt });

export const twoTabs = {
  name: "twoTabs", sign: "lock", needs: ["actors"],
  lends: { a: jwt, b: jwt },
  steps: [
    {
      name: "first", on: "a",
      async does({ a, b, state }) {
        await a.clear();
        const added = await a.add({ product_id: 1, qty: 1 });
        const shown = await b.load();
        expect(shown, shown.ok && shown.data.version === added.data.version);
        state.seen = shown.header("ETag"); // B reads the cart again if the language changes
        const answer = await a.setQuantity(a.now.items[0], 5);
        expect(answer, answer.ok);
        return ["twoTabs_changed", { version: answer.data.version }];
      },
    },
    {
      name: "second", on: "b", proves: true,
      async does({ b, state }) {
        state.wanted = 2;
        const answer = await b.setQuantity(b.now.items[0], state.wanted, { seen: state.seen });
        expect(answer, answer.code === "version_mismatch" && answer.data.count === 5);
        return ["twoTabs_refused", { n: answer.data.count }, answer.code];
      },
    },
    {
      name: "decides", on: "b",
      async does({ b, state }) {
        const answer = await b.setQuantity(b.now.items[0], state.wanted);
        expect(answer, answer.ok);
        return ["twoTabs_applied", { version: answer.data.version }];
      },
    },
  ],
};
