// An AI agent and a shopper change one cart. An update of a cart that the agent has not seen must not undo
// what the shopper did.

import { ask, discover } from "../../api/agent.js";
import { expect } from "../player.js";

const wanted = 3; // game credits

/** withWanted returns the lines of a cart that the agent has seen, with another quantity of game credit. */
const withWanted = ({ line_items: lines }) =>
  lines.map(({ id, item, quantity }) => ({ id, item: { id: item.id }, quantity: item.id === "1" ? wanted : quantity }));

const faultOf = ({ body }) => body?.messages?.find(({ type }) => type === "error");

export const agent = {
  name: "agent", sign: "agent", needs: ["agent"],
  steps: [
    {
      name: "fills", on: "a",
      async does({ a, state }) {
        const carts = await discover();
        const made = await ask("POST", carts, [{ item: { id: "1" }, quantity: 1 }]);
        expect(made, made.status === 201 && made.body.continue_url);
        Object.assign(state, { url: `${carts}/${made.body.id}`, seen: made.body });
        const code = new URL(made.body.continue_url).hash.replace("#handover=", "");
        await a.preview(code);
        const opened = await a.takeOver(code, { keepAgent: true });
        expect(opened, opened.ok && opened.data.count === 1);
        const answer = await a.add({ product_id: 2, qty: 2 });
        expect(answer, answer.ok && answer.data.count === 3);
        return ["agent_filled", { n: answer.data.count }];
      },
    },
    {
      name: "updates", proves: true,
      async does({ state }) {
        const answer = await ask("PUT", state.url, withWanted(state.seen));
        expect(answer, faultOf(answer)?.code === "cart_changed" && answer.body.line_items.length === 2);
        state.seen = answer.body;
        return ["agent_refused", {}, "cart_changed"];
      },
    },
    {
      name: "again", on: "a",
      async does({ a, state }) {
        const updated = await ask("PUT", state.url, withWanted(state.seen));
        expect(updated, updated.ok && !faultOf(updated));
        const answer = await a.load();
        expect(answer, answer.ok && answer.data.count === wanted + 2);
        return ["agent_both", { n: answer.data.count }];
      },
    },
  ],
};
