// One subscription, in a dialog at the side: its history, and everything that GET /subscriptions/<id> says.

import { byId, el, icon, redraw } from "../page/dom.js";
import { onLanguage, t } from "../page/language.js";
import { passes, sentenceOf, warn } from "../page/notices.js";
import { askHistory, historyOf } from "./history.js";
import { markRow } from "./list.js";
import { shownAs, statusBadge } from "./status.js";
import { ask } from "./store.js";

let shown = null; // its ID
let lastAsked = 0;

const panel = () => byId("subscription-details");

export function startDetail() {
  panel().addEventListener("close", () => {
    const row = markRow(shown);
    shown = null;
    markRow(null);
    if (document.activeElement === document.body) row?.querySelector("button").focus(); // what opened it has been redrawn
  });
  onLanguage(() => { if (shown) fetchAndDraw(shown); });
}

/** openDetail shows a subscription. */
export async function openDetail(id) {
  if (!(await fetchAndDraw(id))) return;
  if (!panel().open) panel().showModal();
  byId("subscription-title").focus();
}

/** redrawDetail shows a changed subscription if the dialog shows it. */
export function redrawDetail(id) {
  if (shown === id) fetchAndDraw(id);
}

export function closeDetail() {
  lastAsked++; // an answer on its way may be of another store
  panel().close();
}

async function fetchAndDraw(id) {
  const asked = ++lastAsked;
  const [answer, past] = await Promise.all([ask(`/subscriptions/${encodeURIComponent(id)}`), askHistory(id)]);
  if (asked !== lastAsked) return false; // another one was opened meanwhile
  if (passes(answer)) {
    warn(sentenceOf(answer), () => openDetail(id));
    return false;
  }
  shown = id;
  redraw(panel(), () => [el("div", { class: "detail" },
    el("div", { class: "heading" },
      el("h2", { id: "subscription-title", tabIndex: -1, "data-key": "title" }, `#${id}`),
      answer.ok && statusBadge(answer.data.status),
      el("button", { class: "plain sign", "data-key": "close", "aria-label": t("close"), onclick: closeDetail }, icon("close"))),
    answer.ok ? content(answer.data, historyOf(past, () => fetchAndDraw(id)))
      : el("p", { class: "refusal" }, el("code", { dir: "ltr" }, answer.code), " ", answer.message))]);
  markRow(id);
  return true;
}

function content(s, history) {
  return [
    el("p", { class: "detail-price" }, el("bdi", {}, s.price.formatted), " ", el("span", { class: "hint" }, `${s.product.name} · ${s.variant.duration_text}`)),
    history,
    el("section", {},
      el("h3", {}, `${t("allMembers")} · UTC`),
      el("dl", { class: "members" }, membersOf(s).map(([name, value]) => el("div", {},
        el("dt", {}, el("code", { dir: "ltr", lang: "en" }, name)),
        el("dd", {}, shownAs(name, value)))))),
  ];
}

/** membersOf lists the members of an object with those inside: ["price.amount", 20]. */
function membersOf(object, prefix = "") {
  return Object.entries(object).flatMap(([name, value]) => (
    value === null || typeof value !== "object" ? [[prefix + name, value]] : membersOf(value, `${prefix}${name}.`)));
}
