// Scenarios of single requests: one that is lost, late, outdated or without valid credentials.

import { newKey } from "../../api/api.js";
import { demo } from "../../demo.js";
import { credits, isReplayed, layla, lost, proof, step, sure, tickets, yousef } from "../step.js";

/** lostAnswer: a mobile connection breaks after the service has applied a change. */
export const lostAnswer = {
  name: "lostAnswer", sign: "lost", needs: [],
  steps: [
    step("adds", "a", async ({ a, state }) => {
      state.key = newKey();
      await sure(a.add(credits(1), { key: state.key, lose: true }), lost);
      return ["noAnswer"];
    }),
    proof("repeats", "a", async ({ a, state }) => {
      const { data } = await sure(a.add(credits(1), { key: state.key }), (answer) => isReplayed(answer) && answer.data.count === 1);
      return ["replayed", { version: data.version }];
    }),
    step("clicks", "a", async ({ a }) => {
      const { data } = await sure(a.add(credits(1)), ({ ok, data }) => ok && data.count === 2);
      return ["counted", { version: data.version }];
    }),
  ],
};

const ops = [
  { op: "add", product_id: 1, qty: 2 },
  { op: "edit", item: "2", quantity: 9 }, // the store has 3
  { op: "edit", item: "2", quantity: 3 },
];

/** offline: a phone without a network keeps changes, sends them as one list, and repeats the list when the response is lost. */
export const offline = {
  name: "offline", sign: "phone", needs: [],
  steps: [
    step("sends", "a", async ({ a, state }) => {
      await a.add(tickets(1));
      state.key = newKey();
      await sure(a.apply(ops, { key: state.key, lose: true }), lost);
      return ["noAnswer"];
    }),
    proof("repeats", "a", async ({ a, state }) => {
      const { data } = await sure(a.apply(ops, { key: state.key }), (answer) => isReplayed(answer) && answer.data.count === 5 &&
        answer.data.outcomes.map(({ item_id: item, code }) => code || item).join() === "1,insufficient_stock,2");
      return ["replayed", { message: data.outcomes[1].message, n: ops.length - 1, version: data.version }];
    }),
  ],
};

const wanted = 2;

/** twoTabs: one customer has two tabs open. The second change must not silently undo the first. */
export const twoTabs = {
  name: "twoTabs", sign: "lock", needs: ["actors"], lends: { a: yousef, b: yousef },
  steps: [
    step("first", "a", async ({ a, b, state }) => {
      await a.clear();
      const added = await a.add(credits(1));
      const shown = await sure(b.load(), ({ ok, data }) => ok && data.version === added.data.version);
      state.seen = shown.header("ETag"); // B reads the cart again if the language changes
      const { data } = await sure(a.setQuantity(a.now.items[0], 5));
      return ["changed", { version: data.version }];
    }),
    proof("second", "b", async ({ b, state }) => {
      const { code, data } = await sure(b.setQuantity(b.now.items[0], wanted, { seen: state.seen }),
        (answer) => answer.code === "version_mismatch" && answer.data.count === 5);
      return ["refused", { n: data.count }, code];
    }),
    step("decides", "b", async ({ b }) => {
      const { data } = await sure(b.setQuantity(b.now.items[0], wanted));
      return ["applied", { version: data.version }];
    }),
  ],
};

/** staleToken: a device returns with a malformed cart token, and later with an expired JWT. */
export const staleToken = {
  name: "staleToken", sign: "clock", needs: ["actors", "expired"], lends: { b: layla },
  steps: [
    step("malformed", "a", async ({ a, b }) => {
      await b.clear(); // of an earlier scenario
      a.session.cartToken = "from-an-old-app";
      await sure(a.load(), ({ ok, data }) => ok && data.cart_token !== "from-an-old-app");
      await sure(a.add(credits(1)), ({ ok, data }) => ok && data.count === 1);
      return ["healed"];
    }),
    proof("expired", "a", async ({ a }) => {
      a.session.jwt = demo.expired_jwt;
      const { code, message } = await sure(a.add(credits(1)), ({ status }) => status === 401);
      return ["refused", { message }, code];
    }),
    step("login", "a", async ({ deviceA }) => {
      const { data } = await sure(deviceA.become(layla().jwt), ({ ok, data }) => ok && data.merge?.lines === 1);
      return ["loggedIn", { n: data.count }];
    }),
  ],
};
