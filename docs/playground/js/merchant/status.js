// The six states of a subscription.

import { el } from "../page/dom.js";
import { language, t } from "../page/language.js";

/** statuses are all states, in the order of a subscription's life. */
export const statuses = ["trialing", "active", "past_due", "paused", "canceled", "expired"];

export const statusName = (status) => t(`status_${status}`);

/** statusBadge shows a state in words, where the page is in Arabic with the API's code first. */
export function statusBadge(status) {
  return el("span", { class: "status-badge", "data-status": status }, statusWords(status));
}

/** statusWords returns the content of a badge without its frame. */
export function statusWords(status) {
  const code = language() === "ar" && el("bdi", { class: "code", dir: "ltr", lang: "en" }, status);
  return [code, el("span", {}, statusName(status))].filter(Boolean);
}
