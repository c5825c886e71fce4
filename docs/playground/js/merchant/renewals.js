// What is due: the subscriptions on trial, active or past due, by the end of their period.

import { el } from "../page/dom.js";
import { t } from "../page/language.js";
import { panelOf } from "./panel.js";
import { tableOf } from "./rows.js";
import { ask } from "./store.js";

const days = 14;

const dateIn = (n) => new Date(Date.now() + n * 86_400_000).toISOString().slice(0, 10);

/** startRenewals returns the panel (see panelOf). opened is called with the ID of a row. */
export function startRenewals(opened) {
  return panelOf("renewals-content", {
    read: () => ask(`/subscriptions?sort=periodEnd&periodEndFrom=${dateIn(-days)}&periodEndTo=${dateIn(days)}` +
      "&status=trialing,active,past_due&per_page=50"),
    draw: ({ data, next_page_url: next }) => [
      data.length > 0 ? tableOf(data, opened) : el("p", { class: "empty" }, t("noRenewals")),
      next && el("p", { class: "hint" }, t("moreRenewals")),
    ],
  });
}
