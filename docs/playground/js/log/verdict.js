// The outcome of a request, without words of any language.

/**
 * verdictOf returns { kind, code, message, facts } for an exchange of api/api.js.
 *
 *   kind     decides the color, the icon and the label
 *   code     the service's error code, or ""
 *   message  the service's own sentence, or ""
 *   facts    {name: value}, in the order in which to say them; words.js has the phrases
 */
export function verdictOf({ request, from, before, answer, lost, events, event }) {
  if (!answer) return verdict("waiting");
  if (event) return verdict("event", { nowVersion: event.version });
  if (lost) return verdict("lost", { thrownAway: true });
  if (answer.stopped) return verdict("read", { stopped: true });
  if (answer.status === 0) return verdict("unreachable", { noResponse: true });
  if (answer.status === 304) return verdict("notModified", { size: 0 });
  if (answer.status === 200 && request.path.startsWith("/playground/abandoned")) return verdict("read", { customers: answer.text.split("\n").length - 2 });
  if (!answer.ok) return refusalOf(answer);
  if (events !== undefined) return verdict("live", { events });
  if (from === "agent") return agentsVerdict(request, answer);
  const { data } = answer;
  if (answer.header("Idempotency-Replayed") === "true") return verdict("replayed", { nothingChanged: true, still: data?.version });
  if (answer.merge) return mergeOf(data);
  if (request.path === "/cart/validate") return verdict("valid", { ready: true, warnings: data?.warnings?.length || undefined });
  if (request.path === "/cart/share") return verdict("changed", { link: true });
  const newToken = isReplaced(request, answer) || undefined;
  if (isRead(request)) return verdict("read", { newToken, ...contentOf(request.path, data), size: sizeOf(answer.text) });
  return changeOf(before, data?.version);
}

/** agentsVerdict recognizes a refusal by its message, because its status is 200. */
function agentsVerdict({ method }, { body, text }) {
  const fault = body.messages?.find(({ type }) => type === "error");
  const facts = { lines: body.line_items?.length, size: method === "GET" ? sizeOf(text) : undefined };
  if (!fault) return verdict(method === "GET" ? "read" : "changed", facts);
  return verdict(fault.code === "cart_changed" ? "conflict" : "refused", facts, { code: fault.code, message: fault.content });
}

/** isRead reports whether a call changes nothing, as also a link and its preview do. */
const isRead = ({ method, path, body }) => method === "GET" || path === "/cart/handover" || body?.includes('"preview":true');

/** isReplaced reports whether the service issued a cart token in place of one that it cannot use. */
function isReplaced({ headers }, { header }) {
  const [sent, issued] = [headers["X-Cart-Token"], header("X-Cart-Token")];
  return Boolean(sent && issued && sent !== issued);
}

function verdict(kind, facts = {}, { code = "", message = "" } = {}) {
  return { kind, code, message, facts: Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) };
}

function changeOf(before, version) {
  if (version === undefined) return verdict("changed");
  if (before === null) return verdict("changed", { nowVersion: version });
  if (before === version) return verdict("unchanged", { still: version });
  return verdict("changed", { versions: [before, version] });
}

function mergeOf({ merge, version }) {
  if (merge.code) return verdict("refused", { guestCartStays: true }, { code: merge.code });
  return verdict("merged", { moved: merge.lines, cut: merge.adjusted.length || undefined, version });
}

// The facts of each read. Other paths have only their size.
const contents = {
  "/cart": ({ version, items }) => ({ version, lines: items.length }),
  "/cart/handover/redeem": ({ items }) => ({ lines: items.length }),
  "/cart/count": ({ count, lines }) => ({ pieces: count, lines }),
  "/cart/summary": ({ total, currency }) => ({ total: { amount: total, currency } }),
  "/subscriptions": ({ current_page: page, data }) => ({ rows: { page, n: data.length } }),
  "/subscriptions/summary": ({ by_status: states, mrr }) => ({ subscriptions: sum(Object.values(states)), revenue: mrr }),
  "/subscriptions/changes": (feed) => feedOf(feed),
  "/subscriptions/metrics": ({ data }) => ({ rows: { n: data.length } }),
};

function contentOf(path, data) {
  const name = path.split("?")[0];
  if (!data) return {};
  if (contents[name]) return contents[name](data);
  if (name.startsWith("/cart/share/")) return { lines: data.items.length };
  if (name.endsWith("/history")) return { events: data.data.length };
  return name.startsWith("/subscriptions/") ? { subscription: { id: data.id, status: data.status } } : {};
}

function feedOf({ data, deleted, has_more: more }) {
  if (data.length + deleted.length === 0) return { nothingNew: true };
  return { updated: data.length || undefined, deleted: deleted.length || undefined, more: more || undefined };
}

function refusalOf({ status, code, message, data, header, merge }) {
  const service = { code, message };
  if (status === 412) return verdict("conflict", { changedElsewhere: data?.version }, { code });
  if (status === 401) return verdict("unauthenticated", {}, service);
  if (status === 429 || status === 503) return verdict("busy", { retryAfter: Number(header("Retry-After")) || undefined }, service);
  if (status === 504) return verdict("unknown", { mayBeApplied: true }, { code });
  if (status >= 500) return verdict("failed", {}, service);
  if (code === "cart_invalid") return invalidOf(code, data.issues);
  return verdict("refused", { mergedFirst: merge?.lines > 0 || undefined }, service);
}

function invalidOf(code, issues) {
  if (issues.length === 1) return verdict("invalid", {}, { code, message: issues[0].message });
  return verdict("invalid", { issues: issues.length }, { code });
}

const sizeOf = (text) => new TextEncoder().encode(text).length;

const sum = (numbers) => numbers.reduce((total, n) => total + n, 0);
