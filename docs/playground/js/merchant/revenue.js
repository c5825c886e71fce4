// Revenue month by month: GET /subscriptions/metrics as a chart and as a table.

import { byId, el, redraw } from "../page/dom.js";
import { bare, money, number, t } from "../page/language.js";
import { chartOf, down, up } from "./chart.js";
import { clock, month } from "./dates.js";
import { panelOf } from "./panel.js";
import { ask } from "./session.js";

const months = 18; // with the running one

const moves = [...up, ...down];

let chosen = ""; // the currency, if there are several

/** startRevenue returns the panel (see panelOf). It is drawn again when its width changes. */
export function startRevenue() {
  const panel = panelOf("revenue", {
    read: () => [ask(`/subscriptions/metrics?from=${firstMonth()}`)],
    draw: (data) => contentOf(data, panel),
    optional: true, // a service that records no history
  });
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width > 0 && Math.round(contentRect.width) !== width) panel.redraw();
    width = Math.round(contentRect.width);
  }).observe(byId("revenue"));
  return panel;
}

function firstMonth() {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months + 1, 1)).toISOString().slice(0, 7);
}

function contentOf({ data: all, as_of: asOf }, panel) {
  const currencies = [...new Set(all.map(({ currency }) => currency))];
  const currency = currencies.includes(chosen) ? chosen : largest(all);
  const rows = all.filter((row) => row.currency === currency);
  const known = rows.filter(({ mrr }) => mrr !== null);
  const detail = el("div", { class: "month-detail" });
  const choose = (row) => redraw(detail, () => detailOf(row));
  choose(rows.at(-1));
  return [
    el("div", { class: "panel-head" }, el("h3", {}, t("revenueByMonth")),
      el("span", { class: "hint" }, t("asOf", { time: clock(new Date(asOf)) })), currencies.length > 1 && currencyChoice(currencies, currency, panel)),
    detail,
    chartOf(rows, { width: byId("revenue").clientWidth, label: labelOf(known), choose }),
    known.length < rows.length && el("p", { class: "hint" }, known.length > 0 ? t("recordedSince", { month: month(known[0].month) }) : t("noneYet")),
    tableOf(rows),
  ];
}

const largest = (all) => all.reduce((most, row) => (row.mrr > most.mrr ? row : most), all.at(-1)).currency;

function currencyChoice(currencies, currency, panel) {
  const choose = ({ target }) => {
    chosen = target.value;
    panel.redraw();
  };
  return el("select", { "aria-label": t("currency"), "data-key": "currency", onchange: choose },
    currencies.map((code) => el("option", { value: code, selected: code === currency }, code)));
}

const labelOf = (known) => (known.length === 0 ? t("revenueByMonth") : t("revenueLabel", {
  from: month(known[0].month), first: money(known[0].mrr, known[0].currency),
  to: month(known.at(-1).month), last: money(known.at(-1).mrr, known.at(-1).currency),
}));

// The legend is also where the figures of one month are.
function detailOf(row) {
  return [
    el("p", {}, el("b", {}, month(row.month)), " ", el("bdi", {}, row.mrr === null ? none : money(row.mrr, row.currency)), " ",
      !row.complete && el("span", { class: "hint" }, t("soFar"))),
    el("dl", {}, moves.map((move) => el("div", { "data-move": move },
      el("dt", {}, t(`move_${move}`)), el("dd", {}, el("bdi", {}, signed(row, move)))))),
  ];
}

const none = "–";

function signed(row, move) {
  if (!row[move]) return row[move] === null ? none : bare(0, row.currency);
  return bare(down.includes(move) ? -row[move] : row[move], row.currency, "always");
}

function tableOf(rows) {
  const before = byId("revenue").querySelector("details"); // its state stays
  const scrolled = before?.querySelector(".table-scroll").scrollLeft;
  if (scrolled) requestAnimationFrame(() => byId("revenue").querySelector(".table-scroll")?.scrollTo(scrolled, 0));
  const names = [t("month"), `MRR (${rows[0].currency})`, ...moves.map((move) => t(`move_${move}`)), t("subscriptions")];
  return el("details", { open: before?.open ?? false }, el("summary", { "data-key": "table" }, t("asTable")),
    el("div", { class: "table-scroll", "data-key": "months", tabIndex: 0, role: "group", "aria-label": t("revenueByMonth") },
      el("table", {},
        el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, rows.toReversed().map((row) => el("tr", { "data-month": row.month },
          el("th", { scope: "row" }, month(row.month)),
          el("td", {}, row.mrr === null ? none : bare(row.mrr, row.currency)),
          moves.map((move) => el("td", {}, el("bdi", {}, signed(row, move)))),
          el("td", {}, row.subscriptions === null ? none : number(row.subscriptions))))))));
}
