// A row of the log: a request on one line, and its outcome below.

import { el } from "../page/dom.js";
import { t } from "../page/language.js";
import { detailsOf } from "./details.js";
import { sign } from "./signs.js";
import { verdictOf } from "./verdict.js";
import { verdictNodes } from "./words.js";

/** rowOf makes a row, and returns it with a function that redraws it. */
export function rowOf(exchange, again) {
  const summary = el("summary");
  const details = el("details", {}, summary);
  const item = el("li", { class: "entry" }, details);
  const fill = () => {
    if (details.open) details.replaceChildren(summary, ...detailsOf(exchange, again));
    else details.replaceChildren(summary); // most are never opened
  };
  const refresh = () => {
    item.dataset.kind = verdictOf(exchange).kind;
    summary.replaceChildren(...headOf(exchange), sign("down"));
    fill();
  };
  details.addEventListener("toggle", () => { if (details.open !== (details.children.length > 1)) fill(); });
  refresh();
  return { item, refresh };
}

/** headOf shows an exchange on two lines: the sender and the call, and the verdict. */
export function headOf(exchange) {
  const { request, from, answer, ms, event } = exchange;
  const verdict = verdictOf(exchange);
  return [
    badgeOf(from),
    el("span", { class: "call", dir: "ltr" },
      el("b", { class: `method ${request.method.toLowerCase()}` }, event ? "event: cart" : request.method), " ",
      el("span", { class: "path" }, event ? JSON.stringify({ version: event.version }) : shortened(request.path))), " ",
    el("span", { class: "status" }, !event && answer?.status || ""), " ",
    el("span", { class: "ms", dir: "ltr" }, !event && answer ? `${Math.round(ms)} ms` : ""), " ",
    el("span", { class: "verdict" }, sign(verdict.kind), el("span", { class: "said" }, verdictNodes(verdict, request.headers["Accept-Language"]))),
  ];
}

function badgeOf(from) {
  if (!from) return el("span", { class: "badge" });
  return el("span", { class: `badge from-${from}`, title: t(`from.${from}.long`) },
    el("span", { class: "hidden" }, `${t(`from.${from}.long`)} `),
    from.length > 1 ? sign(from) : el("span", { "aria-hidden": "true" }, t(`from.${from}`)));
}

// IDs and cursors are long. Their ends are enough to tell them apart.
const shortened = (path) => path.replace(/[\w.%-]{20,}/g, (run) => `${run.slice(0, 8)}…${run.slice(-4)}`);
