// A row of the log: a request on one line, and its outcome below.

import { el, icon } from "../page/dom.js";
import { number, t } from "../page/language.js";
import { detailsOf } from "./details.js";
import { verdictNodes, verdictOf } from "./verdict.js";

/**
 * rowOf makes a row, and returns it with a function that redraws it, and one that takes over an earlier row: it
 * counts its requests too, and is open or has the focus if that one was.
 */
export function rowOf(exchange, again) {
  const summary = el("summary");
  const details = el("details", {}, summary);
  const item = el("li", { class: exchange.scenario ? "entry played" : "entry" }, details);
  const row = { item, refresh, takeOver, times: 1 };
  const fill = () => {
    for (const part of details.querySelectorAll(":scope > :not(summary)")) part.remove(); // the summary may have the focus
    if (details.open) details.append(...detailsOf(exchange, again)); // most are never opened
  };
  function refresh() {
    item.dataset.kind = verdictOf(exchange).kind;
    summary.replaceChildren(...headOf(exchange, row.times), icon("chevron-down"));
    fill();
  }
  function takeOver(earlier) {
    row.times += earlier.times;
    details.open ||= earlier.item.firstChild.open;
    const focused = earlier.item.contains(document.activeElement);
    earlier.item.remove();
    refresh();
    if (focused) summary.focus({ preventScroll: true });
  }
  details.addEventListener("toggle", () => { if (details.open !== (details.children.length > 1)) fill(); });
  refresh();
  return row;
}

const signs = {
  waiting: "dots", changed: "check", valid: "check", replayed: "replay", unchanged: "equals", notModified: "equals", read: "down",
  merged: "merge", refused: "forbidden", conflict: "unequal", unauthenticated: "lock", busy: "clock", invalid: "alert",
  lost: "lost", unreachable: "close", failed: "alert", live: "live", event: "bolt", unknown: "question",
};

/** headOf shows an exchange on two lines: the sender and the call, how often it was sent, and the verdict. */
export function headOf(exchange, times = 1) {
  const { request, answer, ms, event } = exchange;
  const verdict = verdictOf(exchange);
  const path = event ? JSON.stringify({ version: event.version }) : request.path;
  return [
    badgeOf(exchange),
    el("span", { class: "call", dir: "ltr" },
      playedIn(exchange),
      el("b", { class: `method ${request.method.toLowerCase()}` }, event ? "event: cart" : request.method),
      el("span", { class: "path" }, el("span", {}, path.slice(0, -tail)), el("span", {}, path.slice(-tail))),
      times > 1 && el("b", { class: "times", title: t("timesSent", { n: number(times) }) }, ` ×${number(times)}`)), " ",
    el("span", { class: "status" }, !event && answer?.status || ""), " ",
    el("span", { class: "ms", dir: "ltr" }, !event && answer ? `${Math.round(ms)} ms` : ""), " ",
    el("span", { class: "verdict" },
      icon(signs[verdict.kind]), el("span", { class: "said" }, ...verdictNodes(verdict, request.headers["Accept-Language"]))),
  ];
}

// A path that is too long is cut in its middle: its end tells IDs and cursors apart.
const tail = 9; // letters that are always shown

function badgeOf({ from }) {
  const sign = { merchant: "store", agent: "agent" }[from];
  return el("span", { class: `badge from-${from}`, title: t(`from.${from}.long`) },
    el("span", { class: "hidden" }, `${t(`from.${from}.long`)} `),
    sign ? icon(sign) : el("span", { "aria-hidden": "true" }, t(`from.${from}`)));
}

/** playedIn marks a request of a scenario. */
function playedIn({ scenario }) {
  if (!scenario) return null;
  const title = t("played", { title: t(`${scenario}_title`) });
  return el("span", { class: "played-in", title }, icon("play"), el("span", { class: "hidden" }, `${title} `));
}
