// Revenue month by month: GET /subscriptions/metrics as bars and as a table, for each currency.

import { byId, el } from "../page/dom.js";
import { bare, money, number, t } from "../page/language.js";
import { clock, month, shortMonth } from "./dates.js";
import { panelOf } from "./panel.js";
import { ask } from "./store.js";

const months = 18; // with the running one

const up = ["new", "imported", "reactivated", "expansion"]; // movements that add to the revenue
const down = ["contraction", "paused", "churned"];

/** startRevenue returns the panel (see panelOf). */
export const startRevenue = () => panelOf("revenue", {
  read: () => ask(`/subscriptions/metrics?from=${firstMonth()}`),
  draw,
  optional: true, // a service that records no history
});

function firstMonth() {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months + 1, 1)).toISOString().slice(0, 7);
}

function draw({ data, as_of: asOf }) {
  return [
    el("div", { class: "panel-head" }, el("h3", {}, t("revenueByMonth")), el("span", { class: "hint" }, t("asOf", { time: clock(new Date(asOf)) }))),
    ...Object.entries(Object.groupBy(data, ({ currency }) => currency)).flatMap(([currency, rows]) => ofCurrency(currency, rows)),
  ];
}

function ofCurrency(currency, rows) {
  const known = rows.filter(({ mrr }) => mrr !== null);
  if (known.length === 0) return [el("p", { class: "hint" }, t("noneYet"))];
  return [
    chartOf(rows, known, currency),
    known.length < rows.length && el("p", { class: "hint" }, t("recordedSince", { month: month(known[0].month) })),
    tableOf(rows, currency),
  ];
}

/** chartOf draws the revenue at the end of each month. Time runs in the direction of reading. */
function chartOf(rows, known, currency) {
  const [first, last] = [known[0], known.at(-1)];
  const most = Math.max(...known.map(({ mrr }) => mrr));
  const label = t("revenueLabel", {
    from: month(first.month), first: money(first.mrr, currency), to: month(last.month), last: money(last.mrr, currency),
  });
  return el("div", { class: "months", role: "img", "aria-label": label }, rows.map(({ month: at, mrr }) => {
    const bar = el("div", { class: "bar" });
    bar.style.blockSize = `${(mrr / most || 0) * 100}%`;
    return el("div", { class: "month", "data-month": at, title: `${month(at)}: ${mrr === null ? none : money(mrr, currency)}` },
      el("div", { class: "column" }, bar), el("span", {}, shortMonth(at)));
  }));
}

const none = "–";

function tableOf(rows, currency) {
  const amount = (value, sign) => el("td", {}, el("bdi", {}, value === null ? none : bare(value, currency, value ? sign : "auto")));
  const names = [...up, ...down].map((move) => t(`move_${move}`));
  return el("details", { open: byId("revenue").querySelector("details")?.open ?? false }, el("summary", { "data-key": "table" }, t("asTable")),
    el("div", { class: "table-scroll", "data-key": currency, tabIndex: 0, role: "group", "aria-label": t("revenueByMonth") },
      el("table", {},
        el("thead", {}, el("tr", {}, [t("month"), `MRR (${currency})`, ...names, t("tabSubscriptions")].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, rows.toReversed().map((row) => el("tr", { "data-month": row.month },
          el("th", { scope: "row" }, row.complete ? month(row.month) : `${month(row.month)} (${t("soFar")})`),
          amount(row.mrr, "auto"),
          up.map((move) => amount(row[move], "always")),
          down.map((move) => amount(row[move] && -row[move], "always")),
          el("td", {}, row.subscriptions === null ? none : number(row.subscriptions))))))));
}
