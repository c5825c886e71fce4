// A shopper shares a gift list. Another one opens the link and adds its lines.

import { newKey } from "../../api/api.js";
import { money } from "../../page/language.js";
import { expect } from "../player.js";

const account = { product_id: 5, qty: 1, fields: { "Account email": "sara@example.com", Region: "us" }, notice: "For Omar" };

export const share = {
  name: "share", sign: "gift", needs: ["backstage"],
  steps: [
    {
      name: "fills", on: "a",
      async does({ a }) {
        await a.add({ product_id: 1, qty: 1 });
        await a.add({ product_id: 7, qty: 2 });
        const answer = await a.add(account);
        expect(answer, answer.ok);
        return ["share_filled", { n: answer.data.count }];
      },
    },
    {
      name: "links", on: "a",
      async does({ a, state }) {
        state.key = newKey();
        const answer = await a.share({ key: state.key, lose: true });
        expect(answer, answer.status === 0);
        return ["share_noAnswer"];
      },
    },
    {
      name: "repeats", on: "a",
      async does({ a, state }) {
        const answer = await a.share({ key: state.key });
        expect(answer, answer.ok);
        state.code = answer.data.code;
        return ["share_linked"];
      },
    },
    {
      name: "opens", on: "b",
      async does({ b, state }) {
        const answer = await b.previewShared(state.code);
        expect(answer, answer.ok && answer.data.count === 4 && !answer.text.includes("sara@"));
        const { total, currency } = answer.data;
        return ["share_shown", { n: answer.data.count, total: () => money(total, currency) }];
      },
    },
    {
      name: "adds", on: "b",
      async does({ b, state }) {
        const answer = await b.addShared(state.code);
        const refused = answer.data?.outcomes?.filter(({ code }) => code) ?? [];
        expect(answer, answer.ok && answer.data.count === 3 && refused.length === 1);
        return ["share_added", { message: refused[0].message }, refused[0].code];
      },
    },
    {
      name: "looks", on: "a",
      async does({ a }) {
        const answer = await a.load();
        expect(answer, answer.status === 304);
        return ["share_same"];
      },
    },
    {
      name: "ends", on: "a",
      async does({ a, b, state }) {
        const ended = await a.unshare(state.code);
        expect(ended, ended.ok);
        const answer = await b.previewShared(state.code);
        expect(answer, answer.status === 404);
        return ["share_ended", {}, answer.code];
      },
    },
  ],
};
