// The merchant's tab: what a store's own programs read with an API token.

import { byId } from "../page/dom.js";
import { closeDetail, openDetail, redrawDetail, startDetail } from "./detail.js";
import { attend, feed, follow, forget } from "./feed.js";
import { emptyFeedPanel, startFeedPanel } from "./feedpanel.js";
import { showCounts, showFilters, startFilters } from "./filters.js";
import { empty, isListing, list, refresh, startList } from "./list.js";
import { startRenewals } from "./renewals.js";
import { startRevenue } from "./revenue.js";
import { session, startStoreSwitch } from "./store.js";
import { startSummary } from "./summary.js";

const fewEnough = 5_000; // subscriptions of a store that the page reads without being asked, to follow them
const between = 3_000;   // between two refreshes, in ms
const stale = 61_000;    // how long the service may show older numbers

let panels; // the summary is the first
let entered = false; // the tab has been shown

let changed = []; // IDs, since the last refresh
let refreshed = 0;
let due = 0;   // the timer of the next refresh; 0 for none
let later = 0; // the timer of the last one after a change

/** startSubscriptions must run after meetDemo. */
export function startSubscriptions() {
  startStoreSwitch(enter);
  startFilters(list);
  startList(openDetail);
  startDetail();
  panels = [startSummary(), startRevenue(), startRenewals(openDetail)];
  document.addEventListener("visibilitychange", attend);
  startFeedPanel(openDetail);
  feed.addEventListener("change", ({ detail: { subscription_id: id } }) => {
    changed.push(id);
    redrawDetail(id);
  });
  feed.addEventListener("news", () => { due ||= setTimeout(refreshAll, Math.max(0, refreshed + between - Date.now())); });
}

/** showSubscriptions is called when the tab is shown, or left. The first time, it loads everything. */
export function showSubscriptions(shown) {
  attend();
  if (!shown) closeDetail();
  if (shown && !entered) enter();
}

/** enter shows another store. */
async function enter() {
  clear();
  entered = true;
  byId("overview").hidden = !session.apiToken;
  const { store } = session;
  const answer = await list("");
  if (store !== session.store) return;
  byId("overview").hidden = !session.apiToken || answer?.status === 401;
  if (!answer?.ok) return;
  const summary = await loadNumbers();
  if (store === session.store && summary.ok && sum(Object.values(summary.data.by_status)) <= fewEnough) follow();
}

/** clear removes what a store has shown. */
function clear() {
  closeDetail();
  forget();
  clearTimeout(due);
  clearTimeout(later);
  due = 0;
  changed = [];
  emptyFeedPanel();
  for (const panel of panels) panel.clear();
  showCounts({});
  empty();
  showFilters("");
}

/** loadNumbers returns the summary's answer. The revenue and the renewals may come later. */
const loadNumbers = () => panels.map((panel) => panel.load())[0];

/** refreshAll shows what has changed, and later also the numbers that the service has kept until then. */
function refreshAll() {
  due = isListing() ? setTimeout(refreshAll, between) : 0;
  if (due) return;
  refreshed = Date.now();
  refresh(changed.splice(0));
  loadNumbers();
  clearTimeout(later);
  later = setTimeout(loadNumbers, stale);
}

const sum = (numbers) => numbers.reduce((total, n) => total + n, 0);
