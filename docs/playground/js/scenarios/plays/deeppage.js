// Page 1,000 of a merchant's subscriptions, by number and by link.

import { showPage } from "../../merchant/subscriptions.js";
import { byId } from "../../page/dom.js";
import { expect } from "../player.js";

function show(query) {
  byId("listing").scrollIntoView();
  return showPage(query, { long: true });
}

export const deepPage = {
  name: "deepPage", sign: "search", needs: ["longList"], area: "subscriptions",
  steps: [
    {
      name: "jumps",
      async does({ state }) {
        const answer = await show("?page=1000");
        expect(answer, answer.ok && answer.data.current_page === 1000);
        state.next = new URL(answer.data.next_page_url, document.baseURI).search;
        return ["deepPage_rows", { from: answer.data.from, to: answer.data.to }];
      },
    },
    {
      name: "follows", proves: true,
      async does({ state }) {
        const answer = await show(state.next);
        expect(answer, answer.ok && answer.data.current_page === 1001);
        return ["deepPage_linked", { from: answer.data.from, to: answer.data.to }];
      },
    },
    {
      name: "filters",
      async does({ state }) {
        const answer = await show(`${state.next}&status=active`);
        expect(answer, answer.code === "invalid_parameter");
        return ["deepPage_foreign", { message: answer.message }, answer.code];
      },
    },
  ],
};
