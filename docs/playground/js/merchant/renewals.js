// What is due: the subscriptions on trial, active or past due, by the end of their period.

import { el } from "../page/dom.js";
import { counted, t } from "../page/language.js";
import { shortDay } from "./dates.js";
import { panelOf } from "./panel.js";
import { ask } from "./session.js";

const days = 14;

/** startRenewals returns the panel (see panelOf). opened is called with the ID of a row. */
export function startRenewals(opened) {
  return panelOf("renewals-content", {
    read: () => [due(-days, 0, "past_due", 12), due(0, days, "trialing,active,past_due", 50)],
    draw: (late, ahead) => contentOf(late, ahead, opened),
  });
}

function due(from, to, status, rows) {
  return ask(`/subscriptions?sort=periodEnd&periodEndFrom=${dateIn(from)}&periodEndTo=${dateIn(to)}&status=${status}&per_page=${rows}`);
}

const dateIn = (n) => new Date(Date.now() + n * 86_400_000).toISOString().slice(0, 10);

function contentOf(late, ahead, opened) {
  const rows = ahead.data.filter(({ id }) => !late.data.some((s) => s.id === id));
  const count = late.next_page_url ? t("cardFails") : counted("failing", late.data.length);
  const linkTo = ({ id }) => el("button",
    { class: "link", "data-key": id, "aria-label": t("show", { id: `#${id}` }), onclick: () => opened(id) }, `#${id}`);
  return [
    late.data.length > 0 && el("p", { class: "late" }, el("span", { class: "tag bad" }, count), late.data.map(linkTo), late.next_page_url && "…"),
    rows.length > 0 ? el("ol", {}, rows.map((s) => rowOf(s, linkTo(s)))) : el("p", { class: "empty" }, t("noRenewals")),
    ahead.next_page_url && el("p", { class: "hint" }, counted("firstOnes", rows.length)),
  ];
}

function rowOf(s, link) {
  const [kind, text] = markOf(s);
  return el("li", {},
    el("time", { dateTime: s.current_period_end }, shortDay(s.current_period_end)),
    link,
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
