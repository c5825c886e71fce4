// The merchant's tab: what a store's own programs read with an API token.

import { byId } from "../page/dom.js";
import { closeDetail, openDetail, redrawDetail, startDetail } from "./detail.js";
import { feed, forget, startFeed } from "./feed.js";
import { emptyFeedPanel, feedIsSeen, startFeedPanel } from "./feedpanel.js";
import { onlyStatus, showFilters, startFilters } from "./filters.js";
import { empty, list, listed, refresh, removeRow, replaceRow, startList } from "./list.js";
import { offered, session } from "./session.js";
import { showStore, startStoreSwitch } from "./storeswitch.js";
import { clearSummary, loadSummary, startSummary } from "./summary.js";

/** startSubscriptions must run after meetDemo. */
export function startSubscriptions() {
  startStoreSwitch(enter);
  startFilters((query) => find(query));
  startList(openDetail);
  startDetail();
  startSummary((status) => find(onlyStatus(status), { reveal: true }));
  startFeed();
  startFeedPanel({ opened: openDetail, refreshed: refreshAll });
  feed.addEventListener("change", ({ detail }) => redrawChanged(detail));
}

/** openSubscriptions is called when the tab is shown. The first time, it loads everything. */
export function openSubscriptions() {
  if (!listed()) enter();
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
  emptyFeedPanel();
  clearSummary();
  empty();
  showFilters("");
  byId("overview").hidden = !session.apiToken;
  const answer = await list(query);
  byId("overview").hidden = !session.apiToken || answer?.status === 401;
  if (answer?.ok) loadSummary();
  return answer;
}

function find(query, options) {
  closeDetail();
  return list(query, options);
}

function refreshAll() {
  feedIsSeen();
  refresh();
  loadSummary();
}

function redrawChanged({ id, event, now }) {
  if (event === "deleted") return removeRow(id);
  replaceRow(now);
  redrawDetail(id);
}
