// A device returns with a malformed cart token, and later with an expired JWT.

import { demo } from "../../demo.js";
import { expect } from "../player.js";

export const staleToken = {
  name: "staleToken", sign: "clock", needs: ["customers", "expired"],
  steps: [
    {
      name: "malformed", on: "a",
      async does({ a }) {
        a.session.cartToken = "from-an-old-app";
        const answer = await a.load();
        expect(answer, answer.ok && answer.data.cart_token !== "from-an-old-app");
        return ["staleToken_healed"];
      },
    },
    {
      name: "adds", on: "a",
      async does({ a }) {
        const answer = await a.add({ product_id: 1, qty: 1 });
        expect(answer, answer.ok);
        return ["staleToken_works", { n: answer.data.count }];
      },
    },
    {
      name: "expired", on: "a",
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
        const answer = await deviceA.become(demo.customers[2].jwt);
        expect(answer, answer.ok && answer.data.merge?.lines === 1);
        return ["staleToken_loggedIn", { n: answer.data.count }];
      },
    },
  ],
};
