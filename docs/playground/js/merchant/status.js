// How the values of a subscription are shown: its state, and what a member was and is.

import { el } from "../page/dom.js";
import { language, t } from "../page/language.js";
import { day, minute } from "./dates.js";

/** statusBadge shows a state in words, where the page is in Arabic with the API's code first. */
export function statusBadge(status) {
  return el("span", { class: "status-badge", "data-status": status },
    language() === "ar" && el("bdi", { class: "code", dir: "ltr", lang: "en" }, status), el("span", {}, t(`status_${status}`)));
}

/** fromTo shows what a member was and is, side by side. */
export function fromTo(member, before, after) {
  return el("span", { class: "from-to" },
    el("span", { class: "was" }, shownAs(member, before)), el("span", { class: "arrow", role: "img", "aria-label": t("becomes") }), shownAs(member, after));
}

/** shownAs shows the value of a member. */
export function shownAs(member, value) {
  if (value === null || value === undefined) return t("none");
  if (member === "status") return statusBadge(value);
  if (value.current_period_end) return el("bdi", {}, day(value.current_period_end));
  if (typeof value === "boolean") return el("bdi", {}, t(value ? "yes" : "no"));
  if (value.last_four) return el("bdi", { dir: "ltr" }, `${value.scheme} •••• ${value.last_four}`);
  if (/^\d{4}-\d\d-\d\d[T ]/.test(value)) return el("bdi", {}, minute(value));
  return el("bdi", {}, value.formatted ?? String(value));
}
