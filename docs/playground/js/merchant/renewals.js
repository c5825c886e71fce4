// What is due: the subscriptions on trial, active or past due, by the end of their period.

import { byId, el, redraw } from "../page/dom.js";
import { counted, onLanguage, t } from "../page/language.js";
import { failed } from "./blank.js";
import { later, shortDay } from "./dates.js";
import { ask } from "./session.js";

const [before, after] = [14, 14]; // days; the payments of those before now have failed

let shown = null; // the answer on the screen
let lastAsked = 0;
let open = () => {};

/** startRenewals calls opened with the ID of a row. */
export function startRenewals(opened) {
  open = opened;
  onLanguage(() => { if (shown) loadRenewals(); });
}

export async function loadRenewals() {
  const asked = ++lastAsked;
  const query = new URLSearchParams({
    sort: "periodEnd", periodEndFrom: dateIn(-before), periodEndTo: dateIn(after), status: "trialing,active,past_due", per_page: "50",
  });
  const answer = await ask(`/subscriptions?${query}`.replaceAll("%2C", ","));
  if (asked === lastAsked) draw(answer); // not of another store
}

/** clearRenewals removes those of another store. */
export function clearRenewals() {
  lastAsked++;
  shown = null;
  byId("renewals-content").replaceChildren();
}

const dateIn = (days) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

function draw(answer) {
  shown = answer;
  redraw(byId("renewals-content"), () => (answer.ok ? contentOf(answer.data) : [failed(answer, loadRenewals)]));
}

function contentOf({ data: rows, next_page_url: more }) {
  const late = rows.filter((s) => s.status === "past_due" && !later(s.current_period_end, new Date().toISOString()));
  const ahead = rows.filter((s) => !late.includes(s));
  return [
    late.length > 0 && el("p", { class: "late" }, el("span", { class: "tag bad" }, counted("failing", late.length)), late.map(linkTo)),
    ahead.length > 0 ? el("ol", {}, ahead.map(rowOf)) : el("p", { class: "empty" }, t("noRenewals")),
    more && el("p", { class: "hint" }, counted("firstOnes", rows.length)),
  ].filter(Boolean);
}

const linkTo = (s) => el("button", { class: "link", "data-key": s.id, "aria-label": t("show", { id: `#${s.id}` }), onclick: () => open(s.id) }, `#${s.id}`);

function rowOf(s) {
  const [kind, text] = markOf(s);
  return el("li", {},
    el("time", { dateTime: s.current_period_end }, shortDay(s.current_period_end)),
    linkTo(s),
    el("span", { class: "what" }, s.product.name, " ", el("span", { class: "hint" }, s.variant.duration_text)),
    el("bdi", { class: "price" }, s.price.formatted),
    text && el("span", { class: `tag ${kind}` }, text));
}

/** markOf returns what is special about a renewal: the kind of its tag, and its text. */
function markOf(s) {
  if (s.status === "past_due") return ["bad", t("cardFails")];
  if (s.cancel_at_period_end) return ["", t("endsThen")];
  if (!s.auto_renew) return ["warm", t("noCard")];
  return s.status === "trialing" ? ["", t("trialEnds")] : ["", ""];
}
