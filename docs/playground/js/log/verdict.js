// The outcome of a request, in words of the page's language.

import { el } from "../page/dom.js";
import { counted, language, money, number, t } from "../page/language.js";

/**
 * verdictOf returns { kind, code, message, facts, quiet } for an exchange of api/api.js.
 *
 *   kind     decides the color, the icon and the label
 *   code     the service's error code, or ""
 *   message  the service's own sentence, or ""
 *   facts    phrases in the order in which to say them
 *   quiet    whether it brings nothing new
 */
export function verdictOf({ request, from, before, answer, lost, events, event }) {
  if (!answer) return verdict("waiting");
  if (event) return verdict("event", event.version ? t("fact.nowVersion", { n: number(event.version) }) : linesOf([]));
  if (lost) return verdict("lost", t("fact.thrownAway"));
  if (answer.stopped) return { ...verdict("read", t("fact.stopped")), quiet: true };
  if (answer.status === 0) return verdict("unreachable", t("fact.noResponse"));
  if (answer.status === 304) return { ...verdict("notModified"), quiet: true };
  if (answer.status === 200 && request.path.startsWith("/playground/abandoned")) {
    return verdict("read", counted("fact.customers", answer.text.split("\n").length - 2));
  }
  if (!answer.ok) return refusalOf(answer);
  if (events !== undefined) return verdict("live", counted("fact.events", events));
  if (from === "agent") return agentsVerdict(request, answer);
  const { data } = answer;
  if (answer.header("Idempotency-Replayed") === "true") return verdict("replayed", t("fact.nothingChanged"), ...still(data?.version));
  if (answer.merge) return mergeOf(data);
  if (request.path === "/cart/validate") return verdict("valid", t("fact.ready"), countedIf("fact.warnings", data?.warnings?.length));
  if (request.path === "/cart/share") return verdict("changed", t("fact.link"));
  return isRead(request) ? readOf(request, answer) : changeOf(before, data?.version);
}

function verdict(kind, ...facts) {
  return { kind, code: "", message: "", facts: facts.filter(Boolean), quiet: false };
}

const countedIf = (key, n) => (n ? counted(key, n) : "");

const still = (version) => (version ? [t("fact.still", { n: number(version) })] : []);

// A cart that the service does not have has no version to speak of.
const versionOf = (version) => (version ? t("fact.version", { n: number(version) }) : "");

/** agentsVerdict recognizes a refusal by its message, because its status is 200. */
function agentsVerdict({ method }, { body }) {
  const fault = body.messages?.find(({ type }) => type === "error");
  const kind = !fault ? (method === "GET" ? "read" : "changed") : fault.code === "cart_changed" ? "conflict" : "refused";
  return { ...verdict(kind, body.line_items && linesOf(body.line_items)), code: fault?.code ?? "", message: fault?.content ?? "" };
}

/** isRead reports whether a call changes nothing, as also a link and its preview do. */
const isRead = ({ method, path, body }) => method === "GET" || path === "/cart/handover" || body?.includes('"preview":true');

function readOf({ path, headers }, { data, header }) {
  const [sent, issued] = [headers["X-Cart-Token"], header("X-Cart-Token")];
  const isReplaced = sent && issued && sent !== issued; // because the service cannot use it
  const [name] = path.split("?");
  return {
    ...verdict("read", isReplaced && t("fact.newToken"), ...contentOf(name, data)),
    quiet: name === "/subscriptions/events" && data?.data.length === 0,
  };
}

function changeOf(before, version) {
  if (!version) return verdict(version === 0 ? "unchanged" : "changed");
  if (before === version) return verdict("unchanged", ...still(version));
  if (before) return verdict("changed", t("fact.versions", { from: number(before), to: number(version) }));
  return verdict("changed", t("fact.nowVersion", { n: number(version) }));
}

function mergeOf({ merge: { code, lines, adjusted }, version }) {
  if (code) return { ...verdict("refused", t("fact.guestCartStays")), code };
  return verdict("merged", counted("fact.moved", lines), countedIf("fact.cut", adjusted.length), versionOf(version));
}

const linesOf = ({ length }) => counted("fact.lines", length);

// What each read has to say.
const contents = {
  "/cart": ({ version, items }) => [versionOf(version), linesOf(items)],
  "/cart/handover/redeem": ({ items }) => [linesOf(items)],
  "/cart/count": ({ count, lines }) => [counted("fact.pieces", count), counted("fact.lines", lines)],
  "/cart/summary": ({ total, currency }) => [t("fact.total", { amount: money(total, currency) })],
  "/subscriptions": ({ current_page: page, data }) => [t("fact.page", { page: number(page), rows: counted("fact.rows", data.length) })],
  "/subscriptions/summary": ({ by_status: states, mrr }) => [
    counted("fact.subscriptions", Object.values(states).reduce((total, n) => total + n, 0)),
    mrr.length > 0 && t("fact.revenue", { amounts: mrr.map(({ amount, currency }) => money(amount, currency)).join(" + ") }),
  ],
  "/subscriptions/events": ({ data, has_more: more }) => (
    data.length === 0 ? [t("fact.nothingNew")] : [counted("fact.events", data.length), more && t("fact.more")]),
  "/subscriptions/metrics": ({ data }) => [counted("fact.rows", data.length)],
};

function contentOf(path, data) {
  if (!data) return [];
  if (contents[path]) return contents[path](data);
  if (path.startsWith("/cart/share/")) return [linesOf(data.items)];
  if (path.endsWith("/history")) return [counted("fact.events", data.data.length)];
  if (!path.startsWith("/subscriptions/")) return [];
  return [t("fact.subscription", { id: isolated(data.id), status: isolated(data.status) })];
}

function refusalOf({ status, code, message, data, header, merge }) {
  const service = { code, message };
  if (status === 412) return { ...verdict("conflict", data && t("fact.changedElsewhere", { n: number(data.version) })), code };
  if (status === 401) return { ...verdict("unauthenticated"), ...service };
  if (status === 429 || status === 503) {
    const seconds = Number(header("Retry-After"));
    return { ...verdict("busy", seconds > 0 && t("fact.retryAfter", { n: number(seconds) })), ...service };
  }
  if (status === 504) return { ...verdict("unknown", t("fact.mayBeApplied")), code };
  if (status >= 500) return { ...verdict("failed"), ...service };
  if (code !== "cart_invalid") return { ...verdict("refused", merge?.lines > 0 && t("fact.mergedFirst")), ...service };
  if (data.issues.length === 1) return { ...verdict("invalid"), code, message: data.issues[0].message };
  return { ...verdict("invalid", counted("fact.issues", data.issues.length)), code };
}

// Left-to-right text within an Arabic sentence.
const isolated = (text) => `\u2066${text}\u2069`;

const clause = ({ facts }) => facts.join(language() === "ar" ? "، " : ", ");

/** verdictNodes shows a verdict: the service's code or a label, then the service's sentence, then the facts. */
export function verdictNodes(verdict, messageLanguage) {
  const { kind, code, message } = verdict;
  return [
    el("b", { class: code ? "label code" : "label" }, code ? el("bdi", { dir: "ltr" }, code) : t(`verdict.${kind}`)),
    message && [" ", el("bdi", { lang: messageLanguage }, message)],
    clause(verdict) && [" ", el("span", {}, clause(verdict))],
  ];
}

/** plainVerdict is a verdict for a screen reader. */
export function plainVerdict(verdict) {
  const label = verdict.code || t(`verdict.${verdict.kind}`);
  const sentence = [verdict.message, clause(verdict)].filter(Boolean).join(" ");
  return sentence ? `${label}: ${sentence}` : label;
}
