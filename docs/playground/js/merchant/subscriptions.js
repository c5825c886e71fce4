// The merchant's tab: what a store's own programs read with an API token.

import { byId } from "../page/dom.js";
import { closeDetail, openDetail, redrawDetail, startDetail } from "./detail.js";
import { attend, feed, follow, forget, startFeed } from "./feed.js";
import { emptyFeedPanel, startFeedPanel } from "./feedpanel.js";
import { showFilters, startFilters } from "./filters.js";
import { empty, isListing, list, listed, refresh, startList } from "./list.js";
import { clearRenewals, loadRenewals, startRenewals } from "./renewals.js";
import { clearRevenue, loadRevenue, startRevenue } from "./revenue.js";
import { offered, session } from "./session.js";
import { showStore, startStoreSwitch } from "./storeswitch.js";
import { clearSummary, loadSummary, startSummary } from "./summary.js";

const fewEnough = 5_000; // subscriptions of a store that the page reads without being asked, to follow them
const between = 3_000;   // between two refreshes, in ms
const stale = 61_000;    // how long the service may show older numbers

let changed = []; // IDs, since the last refresh
let refreshed = 0;
let due = 0;   // the timer of the next refresh; 0 for none
let later = 0; // the timer of the last one after a change

/** startSubscriptions must run after meetDemo. */
export function startSubscriptions() {
  startStoreSwitch(enter);
  startFilters((query) => find(query));
  startList(openDetail);
  startDetail();
  startSummary();
  startRevenue();
  startRenewals(openDetail);
  startFeed();
  startFeedPanel(openDetail);
  feed.addEventListener("change", ({ detail: { id } }) => {
    changed.push(id);
    redrawDetail(id);
  });
  feed.addEventListener("news", () => { due ||= setTimeout(refreshAll, Math.max(0, refreshed + between - Date.now())); });
}

/** showSubscriptions is called when the tab is shown, or left. The first time, it loads everything. */
export function showSubscriptions(shown) {
  attend();
  if (shown && !listed()) enter();
}

/**
 * showPage shows the list at a query such as "?page=1000", of the long list if long is set,
 * otherwise of the sample store. It returns the answer, or null if the demo has no such
 * store. It does not move the focus.
 */
export async function showPage(query, { long = false } = {}) {
  const store = long ? "long" : "sample";
  if (!offered(store)) return null;
  if (session.store === store && listed()) {
    closeDetail();
    return list(query);
  }
  session.store = store;
  showStore();
  return enter(query);
}

/** enter shows another store. */
async function enter(query = "") {
  closeDetail();
  forget();
  clearTimeout(due);
  clearTimeout(later);
  due = 0;
  changed = [];
  emptyFeedPanel();
  clearSummary();
  clearRevenue();
  clearRenewals();
  empty();
  showFilters("");
  byId("overview").hidden = !session.apiToken;
  const { store } = session;
  const answer = await list(query);
  if (store !== session.store) return answer;
  byId("overview").hidden = !session.apiToken || answer?.status === 401;
  if (answer?.ok) loadAll(store);
  return answer;
}

async function loadAll(store) {
  const summary = await loadNumbers();
  if (store === session.store && summary.ok && sum(Object.values(summary.data.by_status)) <= fewEnough) follow();
}

function loadNumbers() {
  loadRevenue();
  loadRenewals();
  return loadSummary();
}

function find(query, options) {
  closeDetail();
  return list(query, options);
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
