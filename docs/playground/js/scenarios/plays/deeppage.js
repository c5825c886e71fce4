// Page 1,000 of a merchant's subscriptions, by number and by link.

import { showPage } from "../../merchant/subscriptions.js";
import { expect } from "../player.js";

export const deepPage = {
  name: "deepPage", sign: "search", needs: ["longList"], area: "subscriptions",
  steps: [
    {
      name: "first",
      async does() {
        const answer = await showPage("", { long: true });
        expect(answer, answer.ok && answer.data.data.length === 15);
        return ["deepPage_rows", { from: answer.data.from, to: answer.data.to }];
      },
    },
    {
      name: "jumps",
      async does({ state }) {
        const answer = await showPage("?page=1000", { long: true });
        expect(answer, answer.ok && answer.data.current_page === 1000);
        state.next = new URL(answer.data.next_page_url, document.baseURI).search;
        return ["deepPage_rows", { from: answer.data.from, to: answer.data.to }];
      },
    },
    {
      name: "follows",
      async does({ state }) {
        const answer = await showPage(state.next, { long: true });
        expect(answer, answer.ok && answer.data.current_page === 1001);
        return ["deepPage_linked", { from: answer.data.from, to: answer.data.to }];
      },
    },
    {
      name: "filters",
      async does({ state }) {
        const answer = await showPage(`${state.next}&status=active`, { long: true });
        expect(answer, answer.code === "invalid_parameter");
        return ["deepPage_foreign", { message: answer.message }, answer.code];
      },
    },
  ],
};
