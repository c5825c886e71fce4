// One subscription with everything that GET /subscriptions/<id> says: beside the list if
// there is room, otherwise as a sheet over it.

import { colored } from "../log/json.js";
import { byId, el, icon, redraw } from "../page/dom.js";
import { onLanguage, t } from "../page/language.js";
import { passes, sentenceOf, warn } from "../page/notices.js";
import { askHistory, historyOf } from "./history.js";
import { markRow } from "./list.js";
import { groupsOf } from "./members.js";
import { ask } from "./session.js";
import { statusBadge } from "./status.js";

const beside = 52; // rem of the tab's width from which the panel stands beside the list

let shown = null; // {id} on the screen
let lastAsked = 0;
let opener = null; // gets the focus back

const panel = () => byId("subscription-details");

export function startDetail() {
  panel().addEventListener("cancel", (event) => { // Escape, while the panel is modal
    event.preventDefault();
    closeDetail();
  });
  byId("listing").addEventListener("keydown", (event) => { if (event.key === "Escape") closeDetail(); });
  panel().addEventListener("click", ({ target }) => { if (target === panel()) closeDetail(); }); // the backdrop
  new ResizeObserver(([{ contentRect }]) => { if (panel().open && contentRect.width > 0) place(); }).observe(byId("subscriptions"));
  onLanguage(() => { if (shown) fetchAndDraw(shown.id); });
}

/** openDetail shows a subscription and moves the focus to it. */
export async function openDetail(id) {
  opener = document.activeElement;
  if (!(await fetchAndDraw(id))) return;
  place();
  byId("subscription-title").focus();
}

/** redrawDetail shows a changed subscription if the panel shows it. */
export function redrawDetail(id) {
  if (shown?.id === id) fetchAndDraw(id);
}

export function closeDetail() {
  lastAsked++; // an answer on its way may be of another store
  if (!shown) return;
  const row = markRow(shown.id);
  const hadFocus = panel().contains(document.activeElement);
  shown = null;
  markRow(null);
  panel().close();
  if (hadFocus) (opener?.isConnected ? opener : row?.querySelector("button"))?.focus();
}

async function fetchAndDraw(id) {
  const asked = ++lastAsked;
  const [answer, past] = await Promise.all([ask(`/subscriptions/${encodeURIComponent(id)}`), askHistory(id)]);
  if (asked !== lastAsked) return false; // another one was opened meanwhile
  if (passes(answer)) {
    warn(sentenceOf(answer), () => openDetail(id));
    return false;
  }
  const raw = panel().querySelector("details")?.open;
  const scrolled = shown?.id === id ? panel().scrollTop : 0;
  shown = { id };
  const focused = panel().contains(document.activeElement);
  redraw(panel(), () => [el("div", { class: "detail" }, content(id, answer, past, raw))]);
  if (focused && !panel().contains(document.activeElement)) byId("subscription-title").focus();
  panel().scrollTop = scrolled;
  markRow(id);
  return true;
}

function content(id, answer, past, raw) {
  const head = el("div", { class: "heading" },
    el("h2", { id: "subscription-title", tabIndex: -1 }, `#${id}`),
    answer.ok && statusBadge(answer.data.status),
    el("button", { class: "plain sign", "data-key": "close", "aria-label": t("close"), onclick: closeDetail }, icon("close")));
  if (!answer.ok) {
    return [head, el("p", { class: "refusal" }, el("code", { dir: "ltr" }, answer.code), " ", answer.message)];
  }
  const s = answer.data;
  return [
    head,
    el("p", { class: "detail-price" }, el("bdi", {}, s.price.formatted), " ", el("span", { class: "hint" }, `${s.product.name} · ${s.variant.duration_text}`)),
    historyOf(past, () => fetchAndDraw(id)),
    ...groupsOf(s),
    el("details", { open: Boolean(raw) },
      el("summary", { "data-key": "all" }, t("allMembers")),
      el("pre", { dir: "ltr", lang: "en", tabIndex: 0 }, el("code", {}, colored(JSON.stringify(s))))),
  ];
}

/** place opens the panel beside the list, or over it, as the room allows. */
function place() {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const modal = byId("subscriptions").clientWidth < beside * rem;
  if (panel().open && panel().matches(":modal") === modal) return;
  const focused = panel().contains(document.activeElement) ? document.activeElement : null;
  if (panel().open) panel().close();
  if (modal) panel().showModal();
  else panel().show();
  focused?.focus();
}
