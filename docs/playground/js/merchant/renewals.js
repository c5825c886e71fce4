// What is due: the subscriptions on trial, active or past due, by the end of their period.

import { byId, el, redraw } from "../page/dom.js";
import { counted, onLanguage, t } from "../page/language.js";
import { failed } from "./blank.js";
import { shortDay } from "./dates.js";
import { ask } from "./session.js";

const days = 14;

let shown = null; // the answers on the screen
let lastAsked = 0;
let open = () => {};

/** startRenewals calls opened with the ID of a row. */
export function startRenewals(opened) {
  open = opened;
  onLanguage(() => { if (shown) loadRenewals(); });
}

export async function loadRenewals() {
  const asked = ++lastAsked;
  const answers = await Promise.all([
    list(dateIn(-days), dateIn(0), "past_due", 12),
    list(dateIn(0), dateIn(days), "trialing,active,past_due", 50),
  ]);
  if (asked === lastAsked) draw(answers); // not of another store
}

function list(from, to, status, rows) {
  return ask(`/subscriptions?sort=periodEnd&periodEndFrom=${from}&periodEndTo=${to}&status=${status}&per_page=${rows}`);
}

/** clearRenewals removes those of another store. */
export function clearRenewals() {
  lastAsked++;
  shown = null;
  byId("renewals-content").replaceChildren();
}

const dateIn = (n) => new Date(Date.now() + n * 86_400_000).toISOString().slice(0, 10);

function draw(answers) {
  shown = answers;
  const fault = answers.find(({ ok }) => !ok);
  redraw(byId("renewals-content"), () => (fault ? [failed(fault, loadRenewals)] : contentOf(...answers.map(({ data }) => data))));
}

function contentOf(late, ahead) {
  const rows = ahead.data.filter(({ id }) => !late.data.some((s) => s.id === id));
  const count = late.next_page_url ? t("cardFails") : counted("failing", late.data.length);
  return [
    late.data.length > 0 && el("p", { class: "late" }, el("span", { class: "tag bad" }, count), late.data.map(linkTo), late.next_page_url && "…"),
    rows.length > 0 ? el("ol", {}, rows.map(rowOf)) : el("p", { class: "empty" }, t("noRenewals")),
    ahead.next_page_url && el("p", { class: "hint" }, counted("firstOnes", rows.length)),
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
