// The rows of the list. On a wide screen they are a table, on a narrow one a card each.

import { el } from "../page/dom.js";
import { counted, t } from "../page/language.js";
import { period } from "./dates.js";
import { statusBadge } from "./status.js";

const columns = ["status", "product", "price", "period", "daysLeft", "renews"];

/**
 * tableOf draws subscriptions. open is called with the ID of one.
 *
 * The roles repeat what the elements are: as cards they are laid out as a grid, and then
 * browsers no longer report them as a table.
 */
export function tableOf(subscriptions, open) {
  return el("table", { class: "subscriptions", role: "table", "aria-label": t("tabSubscriptions") },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" },
      el("th", { scope: "col", role: "columnheader" }, t("number")),
      columns.map((column) => el("th", { scope: "col", role: "columnheader", class: `of-${column}` }, t(column))))),
    el("tbody", { role: "rowgroup" }, subscriptions.map((s) => rowOf(s, open))));
}

function rowOf(s, open) {
  const cell = (column, ...content) => el("td", { role: "cell", class: `of-${column}` }, ...content);
  return el("tr", { role: "row", "data-subscription": s.id },
    el("th", { scope: "row", role: "rowheader", class: "of-number" },
      el("button", { class: "row-button", "data-key": s.id, "aria-label": t("show", { id: `#${s.id}` }), onclick: () => open(s.id) }, `#${s.id}`)),
    cell("status", statusBadge(s.status)),
    cell("product", el("span", { class: "name" }, s.product.name), " ", el("span", { class: "hint" }, s.variant.duration_text)),
    cell("price", el("bdi", {}, s.price.formatted)),
    cell("period", el("bdi", {}, period(s.current_period_start, s.current_period_end))),
    cell("daysLeft", el("span", { class: "in-table" }, counted("days", s.days_remaining)),
      el("span", { class: "in-cards" }, counted("daysLeftOf", s.days_remaining))),
    cell("renews", el("span", { class: s.auto_renew ? "mark on" : "mark" }, el("span", {}, t(s.auto_renew ? "renews" : "renewsNo")))));
}
