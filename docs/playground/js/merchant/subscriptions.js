// The merchant's tab: what a store's own programs read with an API token.

import { byId } from "../page/dom.js";
import { closeDetail, openDetail, redrawDetail, startDetail } from "./detail.js";
import { attend, feed, follow, forget, startFeed } from "./feed.js";
import { emptyFeedPanel, startFeedPanel } from "./feedpanel.js";
import { showCounts, showFilters, startFilters } from "./filters.js";
import { empty, isListing, list, refresh, shownQuery, startList } from "./list.js";
import { startRenewals } from "./renewals.js";
import { startRevenue } from "./revenue.js";
import { offered, session } from "./session.js";
import { showStore, startStoreSwitch } from "./storeswitch.js";
import { startSummary } from "./summary.js";

const fewEnough = 5_000; // subscriptions of a store that the page reads without being asked, to follow them
const between = 3_000;   // between two refreshes, in ms
const stale = 61_000;    // how long the service may show older numbers

let panels; // the summary is the first
let coming = ""; // the query to list when the tab is shown; null: it is listed
let left = null; // {store, query} that the visitor had before showPage

let changed = []; // IDs, since the last refresh
let refreshed = 0;
let due = 0;   // the timer of the next refresh; 0 for none
let later = 0; // the timer of the last one after a change

/** startSubscriptions must run after meetDemo. */
export function startSubscriptions() {
  startStoreSwitch(() => enter());
  startFilters(find);
  startList(openDetail);
  startDetail();
  panels = [startSummary(), startRevenue(), startRenewals(openDetail)];
  startFeed();
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
  if (shown && coming !== null) enter(coming);
}

/**
 * showPage shows the list of a store of the demo at a query such as "?page=1000", until leavePage. It returns the answer,
 * or null if the demo has no such store. It does not move the focus.
 */
export async function showPage(query, { store }) {
  if (!offered(store)) return null;
  left ??= { store: session.store, query: shownQuery() };
  return turnTo(store, query);
}

/** leavePage shows what the visitor had before showPage, when the tab is shown again. */
export function leavePage() {
  if (!left) return;
  session.store = left.store;
  showStore();
  clear();
  coming = left.query;
  left = null;
  showSubscriptions(!byId("subscriptions").hidden);
}

function turnTo(store, query) {
  if (session.store === store && coming === null) return find(query);
  session.store = store;
  showStore();
  return enter(query);
}

/** enter shows another store. */
async function enter(query = "") {
  clear();
  coming = null;
  byId("overview").hidden = !session.apiToken;
  const { store } = session;
  const answer = await list(query);
  if (store !== session.store) return answer;
  byId("overview").hidden = !session.apiToken || answer?.status === 401;
  if (answer?.ok) loadAll(store);
  return answer;
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

async function loadAll(store) {
  const [summary] = await loadNumbers();
  if (store === session.store && summary.ok && sum(Object.values(summary.data.by_status)) <= fewEnough) follow();
}

/** loadNumbers returns the summary's answers. The revenue and the renewals may come later. */
const loadNumbers = () => panels.map((panel) => panel.load())[0];

function find(query) {
  closeDetail();
  return list(query);
}

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
