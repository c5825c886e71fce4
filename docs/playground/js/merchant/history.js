// What happened to one subscription: GET /subscriptions/<id>/history.

import { el } from "../page/dom.js";
import { t } from "../page/language.js";
import { minute } from "./dates.js";
import { fromTo } from "./difference.js";
import { failed } from "./panel.js";
import { ask } from "./session.js";
import { statusBadge } from "./status.js";

const few = 5; // events that are shown at first

/** askHistory returns the answer with the newest events, many of them if whole is set, or with those after a cursor. */
export function askHistory(id, { after, whole }) {
  const query = new URLSearchParams(after ? { limit: "50", after } : { limit: whole ? "100" : String(few) });
  return ask(`/subscriptions/${encodeURIComponent(id)}/history?${query}`);
}

/** historyOf draws a section of an answer. If the service records no history, there is none. */
export function historyOf(id, answer) {
  if (answer.status === 404) return null;
  const events = el("ol", { class: "history" });
  const section = el("section", { id: "subscription-history" }, el("h3", {}, `${t("history")} · UTC`), events);
  const show = (page) => {
    if (!page.ok) return section.append(failed(page, () => more(events.dataset.next)));
    events.append(...page.data.data.map(eventRow));
    events.dataset.next = page.data.next ?? "";
    if (page.data.has_more) section.append(el("button", { class: "plain", "data-key": "earlier", onclick: () => more(page.data.next) }, t("earlier")));
  };
  const more = async (after) => {
    section.lastChild.inert = true; // the button
    const page = await askHistory(id, { after });
    section.lastChild.remove();
    const first = events.children.length;
    show(page);
    events.children[first]?.querySelector("time").focus();
  };
  show(answer);
  return section;
}

function eventRow({ at, event, from, to }) {
  return el("li", { "data-event": event },
    el("time", { class: "hint", dateTime: at, tabIndex: -1 }, minute(at)),
    el("span", {}, t(`history_${event}`)),
    whatOf(event, from, to));
}

function whatOf(event, from, to) {
  if (event === "created") return statusBadge(to);
  return event === "status" && to === null ? t("event_deleted") : fromTo(event, from, to);
}
