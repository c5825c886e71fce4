// The list: GET /subscriptions with its filters, page by page.

import { byId, el, redraw } from "../page/dom.js";
import { clearErrors, showErrors } from "../page/forms.js";
import { number, onLanguage, t } from "../page/language.js";
import { announce } from "../page/notices.js";
import { atPage, isFiltered, ofLink, refuseFilters, showFilters } from "./filters.js";
import { blank, failed } from "./panel.js";
import { tableOf } from "./rows.js";
import { ask, refuseToken, session } from "./store.js";

let open = () => {};
let shown = null; // {query, page} of the list on the screen
let marked = null; // the ID of the row whose details are shown
let lastAsked = 0;

/** startList calls opened with the ID of a row that is chosen. */
export function startList(opened) {
  open = opened;
  const turn = (link) => () => { if (shown?.page[link]) list(ofLink(shown.page[link]), { reveal: true }); };
  byId("page-prev").addEventListener("click", turn("prev_page_url"));
  byId("page-next").addEventListener("click", turn("next_page_url"));
  byId("page-jump").addEventListener("submit", (event) => {
    event.preventDefault();
    const page = event.target.elements.page.value.trim();
    if (page && shown) list(atPage(shown.query, page), { reveal: true });
  });
  onLanguage(() => { if (shown) list(shown.query); });
}

/** isListing reports whether the page waits for a list, which may be older than the latest changes. */
export const isListing = () => byId("subscription-list").ariaBusy === "true";

/** refresh lists the same page again after changes, and marks the rows with these IDs. */
export async function refresh(changed) {
  if (!shown) return;
  await list(shown.query, { quiet: true });
  for (const row of changed.map(rowOnScreen)) row?.classList.add("changed");
}

/** empty removes what another store has shown. */
export function empty() {
  shown = null;
  byId("subscription-list").replaceChildren();
}

/**
 * list shows a page of the list and returns the answer, or null without a token. reveal scrolls to it. quiet
 * leaves the list as it is until the answer is there, and after a failure.
 */
export async function list(query, { reveal = false, quiet = false } = {}) {
  const asked = ++lastAsked;
  const box = byId("subscription-list");
  if (!quiet) box.ariaBusy = String(Boolean(session.apiToken)); // without a token, an answer on its way is not shown
  if (!session.apiToken) {
    byId("subscription-pages").hidden = true;
    say(t("apiToken"), t("tokenNeeded"));
    return null;
  }
  const answer = await ask(`/subscriptions${query}`);
  if (asked !== lastAsked || quiet && !answer.ok) return answer; // a newer request replaces this one
  box.ariaBusy = "false";
  clearErrors(byId("page-jump"));
  if (answer.ok) {
    draw(query, answer.data);
    if (!quiet) announce(position(answer.data));
    if (reveal) scrollToTop();
  } else {
    refuse(query, answer);
  }
  return answer;
}

function draw(query, page) {
  const box = byId("subscription-list");
  shown = { query, page };
  showFilters(query);
  if (page.data.length > 0) redraw(box, () => [tableOf(page.data, open)], box);
  else if (page.current_page > 1) {
    say(position(page), t("pastEndWhy"), el("button", { onclick: () => list(atPage(query, "1"), { reveal: true }) }, t("firstPage")));
  } else if (isFiltered(query)) say(t("noneFound"), t("noneFoundWhy"), el("button", { onclick: () => list("") }, t("resetFilters")));
  else say(t("noneYet"));
  markRow(marked);
  drawPager(page);
}

function drawPager(page) {
  byId("subscription-pages").hidden = page.data.length === 0 && page.current_page === 1;
  // Not disabled: a button that turns the last page must keep the focus.
  byId("page-prev").ariaDisabled = String(!page.prev_page_url);
  byId("page-next").ariaDisabled = String(!page.next_page_url);
  byId("page-position").textContent = position(page);
  byId("page-jump").elements.page.value = "";
}

function position(page) {
  if (page.data.length === 0 && page.current_page === 1) return t("noneFound");
  return page.from === null
    ? t("pastEnd", { page: number(page.current_page) })
    : t("position", { page: number(page.current_page), from: number(page.from), to: number(page.to) });
}

/** say shows a state in place of the rows. */
function say(title, why, action) {
  byId("subscription-list").replaceChildren(blank(title, { why, action }));
}

function refuse(query, answer) {
  if (answer.status === 400) {
    if (!shown) say(answer.message);
    const { page, ...errors } = answer.errors;
    if (page) showErrors(byId("page-jump"), { page }, answer.message);
    if (!page || Object.keys(errors).length > 0) refuseFilters(errors, answer.message);
    return;
  }
  if (answer.status === 401 && session.store === "own") refuseToken(answer.message);
  shown = null;
  byId("subscription-pages").hidden = true;
  byId("subscription-list").replaceChildren(failed(answer, () => list(query), "alert"));
}

/** scrollToTop shows the top of the list if it is outside the window, or nearly so. */
function scrollToTop() {
  const { top } = byId("listing").getBoundingClientRect();
  if (top < 0 || top > innerHeight * 0.7) byId("listing").scrollIntoView({ block: "start" });
}

/** markRow marks the row whose details are shown; null for none. It returns the row. */
export function markRow(id) {
  marked = id;
  for (const row of byId("subscription-list").querySelectorAll("[aria-current]")) row.removeAttribute("aria-current");
  const row = id === null ? null : rowOnScreen(id);
  if (row) row.ariaCurrent = "true";
  return row;
}

const rowOnScreen = (id) => byId("subscription-list").querySelector(`[data-subscription="${Number(id)}"]`);
