// The log of all calls, newest first.

import { exchanges, send } from "../api/api.js";
import { byId } from "../page/dom.js";
import { number, onLanguage, t } from "../page/language.js";
import { announce } from "../page/notices.js";
import { forgetNewest, redrawNewest, showNewest, startBar } from "./bar.js";
import { rowOf } from "./row.js";
import { plainVerdict, verdictOf } from "./verdict.js";

const maxRows = 60; // older rows are removed

const rows = new Map(); // exchange → its row
let removed = 0;

/** startLog shows every exchange. repeated runs after a call of a device was repeated from the log. */
export function startLog({ repeated }) {
  const again = async ({ request, from }) => {
    await send(request, { from });
    byId("log-entries").parentElement.scrollTo({ top: 0 }); // to its row
    repeated(from);
  };
  exchanges.addEventListener("sent", ({ detail }) => append(detail, () => again(detail)));
  exchanges.addEventListener("answered", ({ detail }) => answered(detail));
  byId("log-clear").addEventListener("click", clear);
  onLanguage(() => {
    for (const { refresh } of rows.values()) refresh();
    redrawNewest();
    count();
  });
  startBar();
  count();
}

function append(exchange, again) {
  const row = rowOf(exchange, again);
  rows.set(exchange, row);
  byId("log-entries").prepend(row.item);
  showNewest(exchange);
  for (const [oldest, { item }] of rows) {
    if (rows.size <= maxRows) break;
    rows.delete(oldest);
    removed++;
    item.remove();
  }
  count();
}

function answered(exchange) {
  const verdict = verdictOf(exchange);
  const row = rows.get(exchange);
  row?.refresh(); // it may be cleared
  if (row && verdict.quiet) absorb(exchange, row);
  redrawNewest();
  if (exchange.scenario || isPlainRead(exchange, verdict)) return; // a scenario says what happens
  announce(`${t(`from.${exchange.from}.long`)}: ${plainVerdict(verdict)}`);
}

// Screen readers hear of changes, events, checks and refusals. Reads are too many.
const isPlainRead = ({ request }, { kind }) => request.method === "GET" && ["read", "notModified", "live"].includes(kind);

/**
 * absorb lets a row that brings nothing new replace the sender's previous one if it is of the same call, so that polling
 * does not fill the log. Other calls may come between two polls.
 */
function absorb(exchange, row) {
  const all = [...rows.keys()];
  const last = all.slice(0, all.indexOf(exchange)).findLast((other) =>
    other.from === exchange.from && !other.event && (!isPoll(exchange) || sameCall(other, exchange)));
  if (!last || !sameCall(last, exchange) || !verdictOf(last).quiet) return;
  row.takeOver(rows.get(last));
  rows.delete(last);
  count();
}

// The merchant's feed polls, and its cursor changes.
const isPoll = ({ request }) => request.path.startsWith("/subscriptions/events");

const sameCall = (one, other) => one.scenario === other.scenario && one.request.method === other.request.method &&
  (one.request.path === other.request.path || (isPoll(one) && isPoll(other)));

function clear() {
  rows.clear();
  removed = 0;
  byId("log-entries").replaceChildren();
  byId("log-title").focus();
  forgetNewest();
  count();
}

function count() {
  byId("log-count").textContent = number(rows.size);
  byId("log-empty").hidden = rows.size > 0;
  byId("log-keeps").hidden = removed === 0;
  byId("log-keeps").textContent = t("logKeeps", { n: number(rows.size), total: number(rows.size + removed) });
  byId("log-clear").hidden = rows.size === 0;
}
