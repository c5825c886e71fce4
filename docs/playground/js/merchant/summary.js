// The store's numbers now: GET /subscriptions/summary.

import { byId, el, redraw } from "../page/dom.js";
import { counted, money, number, onLanguage, t } from "../page/language.js";
import { failed } from "./blank.js";
import { clock } from "./dates.js";
import { showCounts } from "./filters.js";
import { ask } from "./session.js";

let shown = null; // the answer on the screen
let lastAsked = 0;

export function startSummary() {
  onLanguage(() => { if (shown) draw(shown); });
}

/** loadSummary counts the store's subscriptions, and returns the answer. */
export async function loadSummary() {
  const asked = ++lastAsked;
  byId("summary-content").ariaBusy = "true";
  const answer = await ask("/subscriptions/summary");
  if (asked !== lastAsked) return answer; // of another store
  byId("summary-content").ariaBusy = "false";
  draw(answer);
  return answer;
}

/** clearSummary removes the numbers of another store. */
export function clearSummary() {
  lastAsked++;
  shown = null;
  byId("summary-content").replaceChildren();
  byId("summary-time").textContent = "";
  showCounts({});
}

function draw(answer) {
  shown = answer;
  byId("summary-time").textContent = answer.ok ? t("asOf", { time: clock(new Date(answer.data.as_of)) }) : "";
  redraw(byId("summary-content"), () => (answer.ok ? [figures(answer.data)] : [failed(answer, loadSummary)]));
  if (answer.ok) showCounts(answer.data.by_status);
}

function figures({ mrr, ending }) {
  const revenue = mrr.map((m) => el("div", { class: "figure" },
    el("dt", {}, t("mrr")),
    el("dd", {}, el("bdi", { class: "big" }, money(m.amount, m.currency))),
    el("dd", { class: "hint" }, counted("mrrOf", m.subscriptions))));
  return el("dl", { class: "figures" },
    revenue,
    el("div", { class: "figure" },
      el("dt", {}, t("ending")),
      el("dd", { class: "big" }, number(ending)),
      el("dd", { class: "hint" }, t("endingWhat"))));
}
