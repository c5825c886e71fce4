// The store's numbers now: GET /subscriptions/summary.

import { el } from "../page/dom.js";
import { money, number, t } from "../page/language.js";
import { clock } from "./dates.js";
import { showCounts } from "./filters.js";
import { panelOf } from "./panel.js";
import { ask } from "./store.js";

/** startSummary returns the panel (see panelOf). */
export const startSummary = () => panelOf("summary-content", { read: () => ask("/subscriptions/summary"), draw });

function draw({ as_of: asOf, by_status: counts, mrr, ending }) {
  showCounts(counts);
  return [
    el("dl", { class: "figures" },
      mrr.map(({ amount, currency, subscriptions }) => figure(t("mrr"), money(amount, currency), t("mrrOf", { n: number(subscriptions) }))),
      figure(t("ending"), number(ending), t("endingWhat"))),
    el("p", { class: "hint" }, t("asOf", { time: clock(new Date(asOf)) })),
  ];
}

function figure(name, value, what) {
  return el("div", { class: "figure" },
    el("dt", {}, name), el("dd", {}, el("bdi", { class: "big" }, value)), el("dd", { class: "hint" }, what));
}
