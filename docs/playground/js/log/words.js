// The words for a verdict, in the page's language.

import { el } from "../page/dom.js";
import { counted, language, money, number, t } from "../page/language.js";

const counts = (key) => (n) => counted(key, n);
const says = (key) => () => t(key);

// A phrase for each fact of verdict.js.
const phrases = {
  thrownAway: says("fact.thrownAway"),
  noResponse: says("fact.noResponse"),
  stopped: says("fact.stopped"),
  nothingChanged: says("fact.nothingChanged"),
  still: (n) => t("fact.still", { n: number(n) }),
  ready: says("fact.ready"),
  warnings: counts("fact.warnings"),
  nowVersion: (n) => t("fact.nowVersion", { n: number(n) }),
  version: (n) => t("fact.version", { n: number(n) }),
  versions: ([from, to]) => t("fact.versions", { from: number(from), to: number(to) }),
  newToken: says("fact.newToken"),
  guestCartStays: says("fact.guestCartStays"),
  mergedFirst: says("fact.mergedFirst"),
  moved: counts("fact.moved"),
  cut: counts("fact.cut"),
  lines: counts("fact.lines"),
  pieces: counts("fact.pieces"),
  total: ({ amount, currency }) => t("fact.total", { amount: money(amount, currency) }),
  rows: ({ page, n }) => (page ? t("fact.page", { page: number(page), rows: counted("fact.rows", n) }) : counted("fact.rows", n)),
  subscriptions: counts("fact.subscriptions"),
  revenue: (mrr) => t("fact.revenue", { amounts: mrr.map(({ amount, currency }) => money(amount, currency)).join(" + ") }),
  subscription: ({ id, status }) => t("fact.subscription", { id: isolated(id), status: isolated(status) }),
  nothingNew: says("fact.nothingNew"),
  updated: counts("fact.updated"),
  deleted: counts("fact.deleted"),
  more: says("fact.more"),
  changedElsewhere: (n) => t("fact.changedElsewhere", { n: number(n) }),
  retryAfter: (n) => t("fact.retryAfter", { n: number(n) }),
  mayBeApplied: says("fact.mayBeApplied"),
  issues: counts("fact.issues"),
  events: counts("fact.events"),
  customers: counts("fact.customers"),
  link: says("fact.link"),
  size: (n) => (n < 1000 ? counted("fact.bytes", n) : t("fact.kilobytes", { n: kilobytes(n) })),
};

const kilobytes = (n) => number(n < 10_000 ? Math.round(n / 100) / 10 : Math.round(n / 1000));

// Left-to-right text within an Arabic sentence.
const isolated = (text) => `\u2066${text}\u2069`;

/** labelOf is the first word of a verdict: the service's code if there is one. */
export function labelOf({ kind, code }) {
  return code || t(`verdict.${kind}`);
}

/** factsOf joins the facts of a verdict into a clause. */
export function factsOf({ facts }) {
  return Object.entries(facts).map(([name, value]) => phrases[name](value)).join(language() === "ar" ? "، " : ", ");
}

/** verdictNodes shows a verdict: the label, then the service's sentence, then the facts. */
export function verdictNodes(verdict, messageLanguage) {
  const facts = factsOf(verdict);
  return [
    el("b", { class: verdict.code ? "label code" : "label" }, verdict.code ? el("bdi", { dir: "ltr" }, verdict.code) : labelOf(verdict)),
    verdict.message && " ",
    verdict.message && el("bdi", { lang: messageLanguage }, verdict.message),
    facts && " ",
    facts && el("span", {}, facts),
  ].filter(Boolean);
}

/** plainVerdict is a verdict for a screen reader. */
export function plainVerdict(verdict) {
  const sentence = [verdict.message, factsOf(verdict)].filter(Boolean).join(" ");
  return sentence ? `${labelOf(verdict)}: ${sentence}` : labelOf(verdict);
}
