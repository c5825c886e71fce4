// The outcome of the last call, above the total: a missing response, a replay, a merge, a
// refusal. It stays until the next call.

import { el, icon } from "../page/dom.js";
import { counted, money, number, t } from "../page/language.js";
import { coded } from "../page/notices.js";
import { fixesOf } from "./cart.js";

const looks = {
  merged: ["good", "merge"], replayed: ["same", "replay"], conflict: ["warm", "alert"], ended: ["warm", "lock"],
  refused: ["bad", "alert"], offered: ["same", "cart"], shared: ["same", "cart"], partly: ["warm", "alert"], undone: ["good", "check"],
  unanswered: ["bad", "lost"],
};

/** outcomeNotes draws a cart's outcome. It returns no elements for none. */
export function outcomeNotes(cart) {
  if (!cart.outcome) return [];
  const { kind, answer, again } = cart.outcome;
  const [tone, sign] = kind === "checked" ? verdictLook(answer) : looks[kind];
  return [el("div", { class: `note outcome ${tone}`, "data-outcome": kind },
    icon(sign),
    el("div", { class: "said" }, ...sentences[kind](answer, cart)),
    again && el("button", { class: "primary again", onclick: again }, t("retrySameKey")),
    el("button", { class: "plain sign", "aria-label": t("dismiss"), onclick: () => cart.dismiss() }, icon("close")))];
}

const sentences = {
  merged: ({ data: { merge } }, cart) => [
    (merge.lines > 0 || !merge.code) && el("p", {}, counted("merged", merge.lines)),
    merge.code && coded(merge.code, t("noRoom")),
    adjustments("cutTo", merge, cart),
    merge.lines > 0 && el("button", { onclick: () => cart.undoMerge(merge.id) }, t("undoMerge")),
  ],
  undone: ({ data }, cart) => [el("p", {}, t("undone")), adjustments("undoKept", data.undone, cart)],
  partly: ({ data }) => [problems(data.outcomes.filter(({ code }) => code))],
  replayed: ({ data }) => [el("p", {}, el("b", {}, t("replayed")), " ", t("stillVersion", { version: number(data.version) }))],
  conflict: ({ code, message }) => [coded(code, t("changedElsewhere", { message }))],
  ended: ({ code, message }) => [coded(code, t("sessionEnded", { message }))],
  refused: ({ code, message, errors }) => [coded(code, Object.values(errors).flat().join(" ") || message)],
  shared: ({ data }, cart) => {
    const { code } = cart.outcome;
    return [linesOf("shared", data), el("button", { class: "primary", onclick: () => cart.addShared(code) }, t("addAll"))];
  },
  offered: ({ data }, cart) => {
    const keep = el("input", { type: "checkbox" });
    const { code } = cart.outcome;
    return [
      linesOf("offered", data),
      data.changed && el("p", {}, t("offerChanged")),
      el("label", { class: "keep" }, keep, t("keepAgent")),
      el("button", { class: "primary", onclick: () => cart.takeOver(code, { keepAgent: keep.checked }) }, t("takeOver")),
    ];
  },
  unanswered: ({ status, code, message }) => [status < 400 ? el("p", {}, t("noAnswer")) : coded(code || `HTTP ${status}`, message)],
  checked: ({ ok, data }, cart) => [
    el("p", {}, t(ok ? "valid" : "invalid")), problems(data.issues), problems(data.warnings),
    fixesOf(data).length > 0 && el("button", { class: "primary", onclick: () => cart.fixAll() }, t("fixAll")),
  ],
};

const problems = (list) => list.length > 0 && el("ul", {}, list.map(({ code, message }) => el("li", {}, coded(code, message))));

const adjustments = (key, { adjusted }, cart) => problems(adjusted.map(({ code, item_id: item, requested, kept }) => (
  { code, message: t(key, { name: cart.nameOf(item), requested: number(requested), kept: number(kept) }) })));

const linesOf = (key, { count, total, currency, items }) => [
  el("p", {}, t(key, { n: number(count), total: money(total, currency) })),
  el("ul", {}, items.map(({ name, quantity }) => el("li", {}, `${number(quantity)} × ${name}`))),
];

const verdictLook = ({ ok, data }) => (!ok ? ["bad", "alert"] : data.warnings.length > 0 ? ["warm", "check"] : ["good", "check"]);
