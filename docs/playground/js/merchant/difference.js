// What a member of a subscription was and is, side by side.

import { el } from "../page/dom.js";
import { t } from "../page/language.js";
import { day } from "./dates.js";
import { statusBadge } from "./status.js";

export function fromTo(member, before, after) {
  return el("span", { class: "from-to" },
    el("span", { class: "was" }, shown(member, before)), el("span", { class: "arrow", role: "img", "aria-label": t("becomes") }), shown(member, after));
}

function shown(member, value) {
  if (value === null || value === undefined) return t("none");
  if (member === "status") return statusBadge(value);
  if (member === "current_period_end") return el("bdi", {}, day(value));
  if (value.current_period_end) return shown("current_period_end", value.current_period_end);
  if (typeof value === "boolean") return el("bdi", {}, t(value ? "yes" : "no"));
  if (value.last_four) return el("bdi", { dir: "ltr" }, `${value.scheme} •••• ${value.last_four}`);
  return el("bdi", {}, value.formatted ?? String(value));
}
