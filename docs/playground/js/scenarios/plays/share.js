// A shopper shares a gift list. Another one opens the link and adds its lines.

import { newKey } from "../../api/api.js";
import { expect } from "../player.js";

const account = { product_id: 5, qty: 1, fields: { "Account email": "sara@example.com", Region: "us" }, notice: "For Omar" };

export const share = {
  name: "share", sign: "gift", needs: ["backstage"],
  steps: [
    {
      name: "links", on: "a",
      async does({ a, state }) {
        await a.add({ product_id: 1, qty: 1 });
        await a.add({ product_id: 7, qty: 2 });
        await a.add(account);
        const key = newKey();
        const lost = await a.share({ key, lose: true });
        expect(lost, lost.status === 0);
        const answer = await a.share({ key });
        expect(answer, answer.ok);
        state.code = answer.data.code;
        return ["share_linked"];
      },
    },
    {
      name: "adds", on: "b", proves: true,
      async does({ b, state }) {
        const shown = await b.previewShared(state.code);
        expect(shown, shown.ok && shown.data.count === 4 && !shown.text.includes("sara@"));
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
      name: "ends", on: "b",
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
