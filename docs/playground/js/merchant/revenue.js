// Revenue month by month: GET /subscriptions/metrics as a chart and as a table.

import { byId, el, redraw } from "../page/dom.js";
import { bare, money, number, onLanguage, t } from "../page/language.js";
import { failed } from "./blank.js";
import { chartOf } from "./chart.js";
import { clock, month } from "./dates.js";
import { ask } from "./session.js";

const months = 18; // with the running one

const moves = ["new", "imported", "reactivated", "expansion", "contraction", "paused", "churned"];
const sinks = ["contraction", "paused", "churned"];

let shown = null; // the answer on the screen
let lastAsked = 0;
let chosen = ""; // the currency, if there are several

export function startRevenue() {
  onLanguage(() => { if (shown) draw(shown); });
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (shown && Math.round(contentRect.width) !== width && contentRect.width > 0) draw(shown);
    width = Math.round(contentRect.width);
  }).observe(byId("revenue"));
}

export async function loadRevenue() {
  const asked = ++lastAsked;
  const now = new Date();
  const from = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months + 1, 1)).toISOString().slice(0, 7);
  const answer = await ask(`/subscriptions/metrics?from=${from}`);
  if (asked === lastAsked) draw(answer); // not of another store
}

/** clearRevenue removes the chart of another store. */
export function clearRevenue() {
  lastAsked++;
  shown = null;
  byId("revenue").replaceChildren();
}

function draw(answer) {
  shown = answer;
  byId("revenue").hidden = answer.status === 404; // no history is recorded
  const scrolled = tableScroll()?.scrollLeft;
  redraw(byId("revenue"), () => (answer.ok ? contentOf(answer.data) : [failed(answer, loadRevenue)]));
  if (scrolled) tableScroll()?.scrollTo(scrolled, 0);
}

const tableScroll = () => byId("revenue").querySelector(".table-scroll");

function contentOf({ data: all, as_of: asOf }) {
  const currencies = [...new Set(all.map(({ currency }) => currency))];
  const currency = currencies.includes(chosen) ? chosen : largest(all);
  const rows = all.filter((row) => row.currency === currency);
  const known = rows.filter(({ mrr }) => mrr !== null);
  const detail = el("div", { class: "month-detail" });
  const choose = (row) => redraw(detail, () => detailOf(row));
  choose(rows.at(-1));
  return [
    el("div", { class: "panel-head" }, el("h3", {}, t("revenueByMonth")),
      el("span", { class: "hint" }, t("asOf", { time: clock(new Date(asOf)) })), currencies.length > 1 && currencyChoice(currencies, currency)),
    detail,
    chartOf(rows, { width: byId("revenue").clientWidth, label: labelOf(known), choose }),
    known.length < rows.length && el("p", { class: "hint" }, known.length > 0 ? t("recordedSince", { month: month(known[0].month) }) : t("noneYet")),
    tableOf(rows),
  ].filter(Boolean);
}

const largest = (all) => all.reduce((most, row) => (row.mrr > most.mrr ? row : most), all.at(-1)).currency;

function currencyChoice(currencies, currency) {
  const choice = el("select", { "aria-label": t("currency"), "data-key": "currency", onchange: ({ target }) => { chosen = target.value; draw(shown); } },
    currencies.map((code) => el("option", { value: code }, code)));
  choice.value = currency;
  return choice;
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
  return bare(sinks.includes(move) ? -row[move] : row[move], row.currency, "always");
}

function tableOf(rows) {
  const head = (text) => el("th", { scope: "col" }, text);
  const open = byId("revenue").querySelector("details")?.open ?? false;
  return el("details", { open }, el("summary", { "data-key": "table" }, t("asTable")),
    el("div", { class: "table-scroll", "data-key": "months", tabIndex: 0, role: "group", "aria-label": t("revenueByMonth") },
      el("table", {},
        el("thead", {}, el("tr", {}, head(t("month")), head(`MRR (${rows[0].currency})`), moves.map((move) => head(t(`move_${move}`))), head(t("subscriptions")))),
        el("tbody", {}, rows.toReversed().map((row) => el("tr", { "data-month": row.month },
          el("th", { scope: "row" }, month(row.month)),
          el("td", {}, row.mrr === null ? none : bare(row.mrr, row.currency)),
          moves.map((move) => el("td", {}, el("bdi", {}, signed(row, move)))),
          el("td", {}, row.subscriptions === null ? none : number(row.subscriptions))))))));
}
