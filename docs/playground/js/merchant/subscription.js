// One subscription with every member of GET /subscriptions/<id>.

import { call } from "../api/api.js";
import { byId, el, icon } from "../page/dom.js";
import { t } from "../page/language.js";
import { passes, sentenceOf, warn } from "../page/notices.js";
import { asStore } from "./session.js";

const tones = { active: "good", trialing: "good", past_due: "warm", paused: "warm", canceled: "bad", expired: "bad" };

/** statusTag shows a status as the service sends it. */
export function statusTag(status) {
  return el("span", { class: `tag ${tones[status] ?? ""}`, lang: "en" }, status);
}

export async function showSubscription(id) {
  const answer = await call("GET", `/subscriptions/${encodeURIComponent(id)}`, { headers: asStore(), from: "merchant" });
  if (passes(answer)) return warn(sentenceOf(answer), () => showSubscription(id));
  const box = byId("subscription-details");
  box.hidden = false;
  box.replaceChildren(
    el("div", { class: "heading" },
      el("h2", {}, `#${id}`),
      answer.ok && statusTag(answer.data.status),
      el("button", { class: "plain sign", "aria-label": t("close"), onclick: hideSubscription }, icon("close"))),
    answer.ok ? members(answer.data) : el("p", { class: "refusal" }, answer.message));
  box.focus();
}

export function hideSubscription() {
  byId("subscription-details").hidden = true;
}

function members(object) {
  return el("dl", { class: "members", dir: "ltr" },
    Object.entries(object).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, shown(value)))));
}

function shown(value) {
  if (value === null) return el("span", { class: "hint" }, "null");
  if (typeof value === "object") return members(value);
  return el("bdi", {}, String(value));
}
