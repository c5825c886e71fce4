// The store's numbers: GET /subscriptions/summary as figures and as a chart.

import { byId, el, redraw } from "../page/dom.js";
import { counted, money, number, onLanguage, t } from "../page/language.js";
import { failed } from "./blank.js";
import { clock } from "./dates.js";
import { ask } from "./session.js";
import { statusName, statuses, statusWords } from "./status.js";

let shown = null; // the answer on the screen
let lastAsked = 0;
let choose = () => {};

/** startSummary calls chosen with a status whose bar is clicked. */
export function startSummary(chosen) {
  choose = chosen;
  onLanguage(() => { if (shown) draw(shown); });
}

/** loadSummary counts the store's subscriptions. */
export async function loadSummary() {
  const asked = ++lastAsked;
  byId("summary-content").ariaBusy = "true";
  const answer = await ask("/subscriptions/summary");
  if (asked !== lastAsked) return; // of another store
  byId("summary-content").ariaBusy = "false";
  draw(answer);
}

/** clearSummary removes the numbers of another store. */
export function clearSummary() {
  lastAsked++;
  shown = null;
  byId("summary-content").replaceChildren();
  byId("summary-time").textContent = "";
}

function draw(answer) {
  shown = answer;
  byId("summary-time").textContent = answer.ok ? t("asOf", { time: clock(new Date(answer.data.as_of)) }) : "";
  redraw(byId("summary-content"), () => (answer.ok ? [figures(answer.data), chartOf(answer.data.by_status)] : [failed(answer, loadSummary)]));
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

/** chartOf draws the counts. To a screen reader, it is a table with a button in each row. */
export function chartOf(counts) {
  const all = statuses.reduce((sum, status) => sum + counts[status], 0);
  const longest = Math.max(1, ...statuses.map((status) => counts[status]));
  return el("table", { class: "chart" },
    el("caption", {}, counted("inAll", all)),
    el("thead", { class: "hidden" }, el("tr", {},
      el("th", { scope: "col" }, t("status")), el("th", { scope: "col" }, t("subscriptions")))),
    el("tbody", {}, statuses.map((status) => bar(status, counts[status], longest))));
}

function bar(status, n, longest) {
  const fill = el("span", { class: "bar", "aria-hidden": "true" });
  fill.style.setProperty("--share", String(n / longest));
  return el("tr", { "data-status": status },
    el("th", { scope: "row" },
      el("button", { "data-key": status, title: t("onlyThese", { status: statusName(status) }), onclick: () => choose(status) }, statusWords(status))),
    el("td", {}, fill, el("span", { class: "count" }, number(n))));
}
