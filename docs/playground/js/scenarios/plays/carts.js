// Scenarios of carts that move, merge and are shared.

import { ask, discover } from "../../api/agent.js";
import { newKey } from "../../api/api.js";
import { setNetwork } from "../../shop/live.js";
import { credits, layla, lost, proof, step, sure, Surprise, tickets, yousef } from "../step.js";

/** isRead is true of a cart that was read. It has not changed (304) if the language has changed meanwhile. */
const isRead = ({ ok, status }) => ok || status === 304;

/** merge: a guest with a full cart logs in as a customer who already has one. */
export const merge = {
  name: "merge", sign: "merge", needs: ["actors"], lends: { b: layla },
  steps: [
    step("fills", "a", async ({ a, b }) => {
      await b.clear();
      const hers = await sure(b.add(tickets(2)));
      await a.add(credits(1));
      const guests = await sure(a.add(tickets(2)));
      return ["filled", { n: hers.data.count, guest: guests.data.count }];
    }),
    proof("login", "a", async ({ deviceA, state }) => {
      const { data } = await sure(deviceA.become(layla().jwt), (answer) => answer.data?.merge?.adjusted.length === 1);
      state.merge = data.merge.id;
      const [{ requested, kept, code }] = data.merge.adjusted;
      return ["cut", { requested, kept }, code];
    }),
    step("again", "a", async ({ a, b, state }) => {
      await sure(a.load(), ({ ok, status, data }) => status === 304 || ok && data.merge?.id === state.merge);
      await sure(b.load(), (answer) => isRead(answer) && b.now.count === a.now.count);
      return ["once"];
    }),
  ],
};

/** undo: a customer logs in on a friend's phone, whose cart merges into hers, and undoes that. */
export const undo = {
  name: "undo", sign: "undo", needs: ["actors"], lends: { b: layla },
  steps: [
    step("login", "a", async ({ a, b, deviceA, state }) => {
      await b.clear();
      await b.add(credits(1));
      await a.add(credits(2));
      await a.add(tickets(1));
      const { data } = await sure(deviceA.become(layla().jwt), ({ data }) => data?.merge?.lines === 2 && data.count === 4);
      state.merge = data.merge.id;
      return ["merged", { n: data.count }];
    }),
    proof("undoes", "a", async ({ a, state }) => {
      await sure(a.undoMerge(state.merge, { lose: true }), lost);
      await sure(a.undoMerge(state.merge), ({ ok, data }) => ok && data.count === 1 && data.undone.adjusted.length === 0);
      return ["undone"];
    }),
    step("again", "a", async ({ a }) => {
      await sure(a.load(), ({ ok, status, merge, data }) => status === 304 || ok && !merge && data.count === 1);
      return ["notAgain"];
    }),
    step("logout", "a", async ({ deviceA }) => {
      const { data } = await sure(deviceA.become(""), ({ ok, data }) => ok && data.count === 3);
      return ["returned", { n: data.count }];
    }),
  ],
};

/** shows waits until a cart has a version, without asking for it. */
async function shows(cart, version) {
  for (const end = Date.now() + 10_000; cart.now?.version !== version;) {
    if (Date.now() > end) throw new Surprise({ status: 0 });
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** live: one customer has a cart open on two devices. One follows what the other does, also across a lost connection. */
export const live = {
  name: "live", sign: "live", needs: ["actors"], lends: { a: yousef, b: yousef }, live: "b",
  steps: [
    step("both", "a", async ({ a, b }) => {
      await a.clear();
      const { data } = await sure(a.add(credits(1)));
      await b.load();
      return ["follows", { version: data.version }];
    }),
    proof("adds", "a", async ({ a, b }) => {
      const { data } = await sure(a.add(tickets(2)));
      await shows(b, data.version);
      return ["shown", { n: b.now.count }];
    }),
    step("breaks", "a", async ({ a, b }) => {
      setNetwork(false);
      await a.setQuantity(a.now.items[0], 3);
      const { data } = await sure(a.redeem("TEN"));
      return ["missed", { version: data.version, old: b.now.version }];
    }),
    step("returns", "b", async ({ a, b }) => {
      setNetwork(true);
      await shows(b, a.now.version);
      return ["current", { version: b.now.version }];
    }),
  ],
};

const wanted = 3; // game credits

/** withWanted returns the lines of a cart that the agent has seen, with another quantity of game credit. */
const withWanted = ({ line_items: lines }) =>
  lines.map(({ id, item, quantity }) => ({ id, item: { id: item.id }, quantity: item.id === "1" ? wanted : quantity }));

const faultOf = ({ body }) => body?.messages?.find(({ type }) => type === "error");

/** agent: an AI agent and a shopper change one cart. The agent must not undo what the shopper did. */
export const agent = {
  name: "agent", sign: "agent", needs: ["agent"],
  steps: [
    step("fills", "a", async ({ a, state }) => {
      const carts = await discover();
      const { body } = await sure(ask("POST", carts, [{ item: { id: "1" }, quantity: 1 }]),
        ({ status, body }) => status === 201 && body.continue_url);
      Object.assign(state, { url: `${carts}/${body.id}`, seen: body });
      const code = new URL(body.continue_url).hash.replace("#handover=", "");
      await a.preview(code);
      await sure(a.takeOver(code, { keepAgent: true }), ({ ok, data }) => ok && data.count === 1);
      const { data } = await sure(a.add(tickets(2)), ({ ok, data }) => ok && data.count === 3);
      return ["filled", { n: data.count }];
    }),
    proof("updates", "", async ({ state }) => {
      const answer = await sure(ask("PUT", state.url, withWanted(state.seen)),
        (answer) => faultOf(answer)?.code === "cart_changed" && answer.body.line_items.length === 2);
      state.seen = answer.body;
      return ["refused", {}, "cart_changed"];
    }),
    step("again", "a", async ({ a, state }) => {
      await sure(ask("PUT", state.url, withWanted(state.seen)), (answer) => answer.ok && !faultOf(answer));
      const { data } = await sure(a.load(), ({ ok, data }) => ok && data.count === wanted + 2);
      return ["both", { n: data.count }];
    }),
  ],
};

/** handover: a shopper takes a cart from a phone to a laptop, with a link. */
export const handover = {
  name: "handover", sign: "laptop", needs: ["backstage"],
  steps: [
    step("links", "a", async ({ a, state }) => {
      await a.add(credits(1));
      await a.add(tickets(2));
      const { data } = await sure(a.handOver());
      state.code = data.code;
      return ["linked"];
    }),
    proof("takes", "b", async ({ b, state }) => {
      await sure(b.preview(state.code), ({ ok, data }) => ok && data.count === 3);
      const key = newKey();
      await sure(b.takeOver(state.code, { key, lose: true }), lost);
      const { data } = await sure(b.takeOver(state.code, { key }), ({ ok, data }) => ok && data.count === 3);
      return ["moved", { n: data.count }];
    }),
    step("looks", "a", async ({ a }) => {
      await sure(a.load(), (answer) => isRead(answer) && a.now.count === 0);
      return ["empty"];
    }),
    step("again", "a", async ({ a, state }) => {
      const { code } = await sure(a.takeOver(state.code), ({ status }) => status === 404);
      return ["used", {}, code];
    }),
  ],
};

const account = { product_id: 5, qty: 1, fields: { "Account email": "sara@example.com", Region: "us" }, notice: "For Omar" };

/** share: a shopper shares a gift list. Another one opens the link and adds its lines. */
export const share = {
  name: "share", sign: "gift", needs: ["backstage"],
  steps: [
    step("links", "a", async ({ a, state }) => {
      for (const gift of [credits(1), { product_id: 7, qty: 2 }, account]) await a.add(gift);
      const key = newKey();
      await sure(a.share({ key, lose: true }), lost);
      const { data } = await sure(a.share({ key }));
      state.code = data.code;
      return ["linked"];
    }),
    proof("adds", "b", async ({ b, state }) => {
      await sure(b.previewShared(state.code), ({ ok, data, text }) => ok && data.count === 4 && !text.includes("sara@"));
      const refusedOf = (data) => data.outcomes?.filter(({ code }) => code) ?? [];
      const { data } = await sure(b.addShared(state.code), ({ ok, data }) => ok && data.count === 3 && refusedOf(data).length === 1);
      const [{ message, code }] = refusedOf(data);
      return ["added", { message }, code];
    }),
    step("looks", "a", async ({ a }) => {
      await sure(a.load(), ({ status }) => status === 304);
      return ["same"];
    }),
    step("ends", "b", async ({ a, b, state }) => {
      await sure(a.unshare(state.code));
      const { code } = await sure(b.previewShared(state.code), ({ status }) => status === 404);
      return ["ended", {}, code];
    }),
  ],
};
