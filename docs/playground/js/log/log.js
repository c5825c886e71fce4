// The log of all calls, newest first.

import { exchanges, send } from "../api/api.js";
import { byId } from "../page/dom.js";
import { number, onLanguage, t } from "../page/language.js";
import { announce } from "../page/notices.js";
import { rowOf } from "./row.js";
import { redrawNewest, showNewest, startSheet } from "./sheet.js";
import { startTries } from "./tries.js";
import { verdictOf } from "./verdict.js";
import { plainVerdict } from "./words.js";

const maxRows = 60; // older rows are removed

const rows = new Map(); // exchange → its row
let removed = 0;

/**
 * startLog shows every exchange.
 *
 * @param {{repeated: (from: string) => void, tries: (path: string) => void}} options
 *   repeated: runs after a call of this device was repeated from the log. tries: makes a
 *   GET request for a path
 */
export function startLog({ repeated, tries }) {
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
  startSheet();
  startTries(tries);
  redrawNewest();
  count();
}

function append(exchange, again) {
  const row = rowOf(exchange, again);
  rows.set(exchange, row);
  byId("log-entries").prepend(row.item);
  showNewest(exchange);
  trim();
  count();
}

function answered(exchange) {
  const row = rows.get(exchange);
  row?.refresh(); // it may be cleared
  if (row && bringsNothing(exchange)) absorb(exchange, row);
  redrawNewest();
  if (matters(exchange) && !exchange.scenario) say(exchange); // a scenario says what happens
}

/**
 * absorb lets a row that brings nothing new replace the sender's previous one if it is of the same call, so that polling
 * does not fill the log. Other calls may come between two polls.
 */
function absorb(exchange, row) {
  const all = [...rows.keys()];
  const last = all.slice(0, all.indexOf(exchange)).findLast((other) =>
    other.from === exchange.from && !other.event && (!isPoll(exchange) || sameCall(other, exchange)));
  if (!last || !sameCall(last, exchange) || !bringsNothing(last)) return;
  row.takeOver(rows.get(last));
  rows.delete(last);
  count();
}

const bringsNothing = (exchange) => {
  const { kind, facts } = verdictOf(exchange);
  return kind === "notModified" || facts.nothingNew || facts.stopped;
};

// The merchant's feed polls, and its cursor changes.
const isPoll = ({ request }) => request.path.startsWith("/subscriptions/changes");

const sameCall = (one, other) => one.scenario === other.scenario && one.request.method === other.request.method &&
  (one.request.path === other.request.path || (isPoll(one) && isPoll(other)));

// Screen readers hear of changes, events, checks and refusals. Reads are too many.
function matters(exchange) {
  return exchange.request.method !== "GET" || !["read", "notModified", "live"].includes(verdictOf(exchange).kind);
}

function say(exchange) {
  const who = exchange.from ? `${t(`from.${exchange.from}.long`)}: ` : "";
  announce(who + plainVerdict(verdictOf(exchange)));
}

function clear() {
  rows.clear();
  removed = 0;
  byId("log-entries").replaceChildren();
  byId("log-title").focus();
  showNewest(null);
  count();
}

function trim() {
  for (const [exchange, { item }] of rows) {
    if (rows.size <= maxRows) return;
    rows.delete(exchange);
    removed++;
    item.remove();
  }
}

function count() {
  byId("log-count").textContent = number(rows.size);
  byId("log-empty").hidden = rows.size > 0;
  byId("log-keeps").hidden = removed === 0;
  byId("log-keeps").textContent = t("logKeeps", { n: number(rows.size), total: number(rows.size + removed) });
  byId("log-clear").hidden = rows.size === 0;
}
