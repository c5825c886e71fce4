// A device returns with a malformed cart token, and later with an expired JWT.

import { demo } from "../../demo.js";
import { expect } from "../player.js";

export const staleToken = {
  name: "staleToken", sign: "clock", needs: ["actors", "expired"],
  lends: { b: () => ({ jwt: demo.actors[0].jwt }) },
  steps: [
    {
      name: "malformed", on: "a",
      async does({ a, b }) {
        await b.clear(); // of an earlier scenario
        a.session.cartToken = "from-an-old-app";
        const healed = await a.load();
        expect(healed, healed.ok && healed.data.cart_token !== "from-an-old-app");
        const answer = await a.add({ product_id: 1, qty: 1 });
        expect(answer, answer.ok && answer.data.count === 1);
        return ["staleToken_healed"];
      },
    },
    {
      name: "expired", on: "a", proves: true,
      async does({ a }) {
        a.session.jwt = demo.expiredJWT;
        const answer = await a.add({ product_id: 1, qty: 1 });
        expect(answer, answer.status === 401);
        return ["staleToken_refused", { message: answer.message }, answer.code];
      },
    },
    {
      name: "login", on: "a",
      async does({ deviceA }) {
        const answer = await deviceA.become(demo.actors[0].jwt);
        expect(answer, answer.ok && answer.data.merge?.lines === 1);
        return ["staleToken_loggedIn", { n: answer.data.count }];
      },
    },
  ],
};
