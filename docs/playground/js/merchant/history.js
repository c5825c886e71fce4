// What happened to one subscription: GET /subscriptions/<id>/history.

import { el } from "../page/dom.js";
import { t } from "../page/language.js";
import { minute } from "./dates.js";
import { failed } from "./panel.js";
import { fromTo, statusBadge } from "./status.js";
import { ask } from "./store.js";

/** askHistory returns the answer, with the newest events first. */
export const askHistory = (id) => ask(`/subscriptions/${encodeURIComponent(id)}/history?limit=100`);

/** historyOf draws a section of an answer. If the service records no history, there is none. */
export function historyOf(answer, again) {
  if (answer.status === 404) return null;
  return el("section", { id: "subscription-history" },
    el("h3", {}, `${t("history")} · UTC`),
    answer.ok ? el("ol", { class: "history", tabIndex: 0, "data-key": "history", "aria-label": t("history") }, answer.data.data.map(eventRow)) : failed(answer, again),
    answer.data?.has_more && el("p", { class: "hint" }, t("newestEvents")));
}

function eventRow(event) {
  return el("li", { "data-event": event.event },
    el("time", { class: "hint", dateTime: event.at }, minute(event.at)),
    el("span", {}, t(`history_${event.event}`)),
    whatOf(event));
}

/** isDeletion reports whether a subscription was deleted. */
export const isDeletion = ({ event, to }) => event === "status" && to === null;

/** whatOf shows what an event has changed. */
export function whatOf({ event, from, to }) {
  if (event === "created") return statusBadge(to);
  return isDeletion({ event, to }) ? el("span", {}, t("deleted")) : fromTo(event, from, to);
}
