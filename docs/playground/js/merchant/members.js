// The members of GET /subscriptions/<id>, in groups and in words. Each has its JSON name
// beside it, so that a developer finds it in the response.

import { el } from "../page/dom.js";
import { counted, money, t } from "../page/language.js";
import { day, minute } from "./dates.js";

const yesNo = (value) => t(value ? "yes" : "no");
const code = (value) => el("bdi", { class: "code", dir: "ltr" }, String(value));
const amount = (price, currency) => el("bdi", {}, money(price, currency));

// For each member: its JSON name, its label, and how its value is shown. A member that the
// response does not have, because of the status, is left out.
const groups = [
  ["groupNow", [
    ["is_active", "hasAccess", yesNo],
    ["is_expired", "isExpired", yesNo],
    ["auto_renew", "renews", yesNo],
    ["cancel_at_period_end", "cancelAtEnd", yesNo],
  ]],
  ["period", [
    ["current_period_start", "periodFrom", minute],
    ["current_period_end", "periodTo", minute],
    ["days_remaining", "daysLeft", (n) => counted("days", n)],
    ["trial_ends_at", "trialEnds", minute],
    ["next_retry_at", "nextRetry", minute],
    ["grace_ends_at", "graceEnds", minute],
    ["paused_at", "pausedAt", minute],
    ["paused_remaining_days", "pausedDays", (n) => counted("days", n)],
    ["canceled_at", "canceledAt", minute],
    ["starts_at", "startsAt", day],
    ["ends_at", "endsAt", day],
  ]],
  ["groupProduct", [
    ["product", "product", (p) => [el("span", {}, p.name), code(p.slug)]],
    ["variant", "variant", (v, s) => [el("span", {}, v.duration_text), amount(v.price, s.price.currency)]],
    ["scheduled_variant", "nextPlan", (v, s) => [el("span", {}, v.duration_text), amount(v.price, s.price.currency)]],
  ]],
  ["groupPayment", [
    ["price", "price", (p) => el("bdi", {}, p.formatted)],
    ["payment_method", "card", (card) => code(`${card.scheme} •••• ${card.last_four}`)],
    ["order_id", "order", code],
  ]],
  ["groupCustomer", [
    ["external_customer_id", "externalId", code],
  ]],
  ["groupMore", [
    ["features", "features", (features) => code(JSON.stringify(features))],
    ["created_at", "createdAt", minute],
    ["updated_at", "updatedAt", minute],
  ]],
];

const timed = ["period", "groupMore"]; // have dates

/** groupsOf returns the sections of a subscription. */
export function groupsOf(s) {
  const sections = groups.map(([title, members]) => section(timed.includes(title) ? `${t(title)} · UTC` : t(title),
    members.filter(([name]) => name in s).map(([name, label, show]) => row(t(label), name, s[name] === null ? null : show(s[name], s)))));
  const metadata = Object.entries(s.metadata ?? {}).map(([name, value]) => row(name, `metadata.${name}`, code(asText(value))));
  if (metadata.length > 0) sections.push(section(t("metadata"), metadata));
  return sections;
}

function section(title, rows) {
  return el("section", {}, el("h3", {}, title), el("dl", { class: "members" }, rows));
}

function row(label, name, value) {
  return el("div", {},
    el("dt", {}, el("bdi", {}, label), " ", el("code", { dir: "ltr", lang: "en" }, name)),
    el("dd", {}, value ?? el("span", { class: "hint" }, t("none"))));
}

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
