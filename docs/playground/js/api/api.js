// One call of the API, as a good client makes it: with a language, with a key that makes
// retries safe, and with a wait when the service asks for one.

import { base } from "./base.js";
import { callAsAgent } from "../demo.js";
import { language } from "../page/language.js";

const attempts = 3;

/** browserFetch makes requests as they are. storefront.js replaces the page's own. */
export const browserFetch = globalThis.fetch;

/**
 * exchanges has an event for each attempt: "sent" and "answered". The detail is an exchange:
 *
 *   request  {method, path, url, headers, body}, as sent
 *   from     who called: "a" and "b" are the two devices, "merchant" is the store, "agent" an AI agent
 *   scenario the name of the scenario that plays, or ""
 *   before   the cart version that the caller knew, or null
 *   at, ms   when it was sent, and how long it took
 *   answer   what the caller got; null while it waits
 *   lost     the real answer if the page threw it away, otherwise null
 *   events   how many a stream has sent; undefined unless it is one
 *   event    {id, version} if it is not a request but an event of a stream
 */
export const exchanges = new EventTarget();

/** pauses has an event "pause" for each wait before a retry, in seconds. */
export const pauses = new EventTarget();

/**
 * call makes a request and returns { status, ok, code, message, errors, data, header, merge }.
 * status 0 means that there was no response. merge is the report of a merge that the caller has
 * not seen before; the service repeats a report for a minute, in case a response is lost. If the service is busy, the call is retried
 * with the same key, so that it is applied only once.
 *
 * @param {string} method
 * @param {string} path below the base, such as "/cart"
 * @param {{from: string, body?: object, headers?: object, key?: string, before?: number, lose?: boolean, signal?: AbortSignal}} options
 *   key: the Idempotency-Key of a change; newKey() makes one. lose: throw the response away, as a connection that breaks
 *   after the service has applied a change. signal: ends a read, whose answer is then stopped
 */
export async function call(method, path, { from, body, headers = {}, key, before, lose, signal }) {
  const request = {
    method, path,
    url: new URL(path.replace(/^\//, ""), base).href,
    headers: { Accept: "application/json", "Accept-Language": language(), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  };
  if (request.body !== undefined) request.headers["Content-Type"] = "application/json";
  if (key) {
    request.headers["Idempotency-Key"] = key;
    request.headers["X-Timestamp"] = String(Math.floor(Date.now() / 1000));
  }
  for (let attempt = 1; ; attempt++) {
    const answer = await send(request, { from, before, lose, signal });
    if (attempt === attempts || !mayRepeat(answer) || signal?.aborted) return answer;
    const wait = Math.min(Math.max(Number(answer.header("Retry-After")) || attempt, 1), 10);
    pauses.dispatchEvent(new CustomEvent("pause", { detail: { answer, wait } }));
    await new Promise((done) => setTimeout(done, wait * 1000));
  }
}

// Reads and changes with a key are safe to repeat.
const mayRepeat = ({ status }) => status === 503 || status === 429;

/** send makes one attempt without retries. The log uses it to repeat a call. */
export async function send(request, { from, before = null, lose = false, signal }) {
  const exchange = begin({ request, from, before });
  const answer = await attempt(request, from, signal);
  if (!lose) answer.merge = unseen(from, answer.data?.merge);
  exchange.lost = lose ? answer : null;
  return end(exchange, lose ? nothing() : answer);
}

/** begin tells of an exchange that begins. */
export function begin(members) {
  const scenario = document.documentElement.dataset.playing ?? "";
  const exchange = { scenario, before: null, at: new Date(), ms: 0, answer: null, lost: null, ...members };
  exchanges.dispatchEvent(new CustomEvent("sent", { detail: exchange }));
  return exchange;
}

/** end tells of the answer to an exchange, and returns it. */
export function end(exchange, answer) {
  if (!exchange.answer) exchange.ms = Date.now() - exchange.at;
  exchange.answer = answer;
  exchanges.dispatchEvent(new CustomEvent("answered", { detail: exchange }));
  return answer;
}

const seen = new Set();

/** unseen returns a report that a caller gets for the first time, or that a cart waits for room. */
function unseen(from, merge) {
  if (!merge) return null;
  const name = `${from} ${merge.id}`;
  if (seen.has(name) && !merge.code) return null;
  seen.add(name);
  return merge;
}

/** nothing is the answer if there is none. */
export const nothing = () => answerOf(0, "", () => null);

async function attempt(request, from, signal) {
  try {
    if (from === "agent") {
      const { status, headers, body } = await callAsAgent(request);
      return answerOf(status, body, (name) => headers[name] ?? null);
    }
    const { method, url, headers, body } = request;
    const response = await browserFetch(url, { method, headers, body, signal, credentials: "omit", cache: "no-store" });
    return answerOf(response.status, await response.text(), (name) => response.headers.get(name));
  } catch {
    return { ...nothing(), stopped: signal?.aborted };
  }
}

/** answerOf makes an answer of a response. */
export function answerOf(status, text, header) {
  const body = parse(text);
  return {
    status, ok: status >= 200 && status < 300 && body !== null, text, body, header, merge: null,
    code: body?.code ?? "", message: body?.message ?? body?.content ?? "", errors: body?.errors ?? {}, data: body?.data ?? null,
  };
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** newKey returns a key for one change and its retries. */
export function newKey() {
  // randomUUID exists only on https and localhost
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}
