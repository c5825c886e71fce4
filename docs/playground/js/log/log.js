// The log of all calls, for developers.

import { exchanges, send } from "../api/api.js";
import { curlOf } from "./curl.js";
import { byId, el } from "../page/dom.js";
import { colored } from "./json.js";
import { onLanguage, t } from "../page/language.js";
import { tell } from "../page/notices.js";

const most = 60; // entries that are kept

const told = ["ETag", "Idempotency-Replayed", "Retry-After", "WWW-Authenticate", "Allow", "X-Cart-Token", "Durability",
  "RateLimit-Remaining", "X-Request-Id"];

const entries = new Map(); // exchange → its element
let afterwards = () => {};

/** startLog calls repeated after a call was repeated from the log. */
export function startLog(repeated) {
  afterwards = repeated;
  exchanges.addEventListener("sent", ({ detail }) => {
    const item = entryOf(detail);
    entries.set(detail, item);
    byId("log-entries").prepend(item);
    trim();
  });
  exchanges.addEventListener("answered", ({ detail }) => redrawEntry(detail));
  byId("log-clear").addEventListener("click", () => {
    entries.clear();
    byId("log-entries").replaceChildren();
  });
  onLanguage(() => { for (const exchange of entries.keys()) redrawEntry(exchange); });
}

function trim() {
  for (const [exchange, item] of entries) {
    if (entries.size <= most) return;
    entries.delete(exchange);
    item.remove();
  }
}

function redrawEntry(exchange) {
  const old = entries.get(exchange);
  if (!old) return; // cleared meanwhile
  const item = entryOf(exchange);
  item.firstChild.open = old.firstChild.open;
  old.replaceWith(item);
  entries.set(exchange, item);
}

function entryOf(exchange) {
  const { request, answer, ms } = exchange;
  const details = el("details", {},
    el("summary", { dir: "ltr" },
      el("b", { class: `method ${request.method.toLowerCase()}` }, request.method),
      el("span", { class: "path" }, request.path),
      el("span", { class: `status ${kind(answer)}` }, answer ? answer.status || t("failed") : t("pending")),
      el("span", { class: "ms" }, answer ? `${Math.round(ms)} ms` : "")));
  details.addEventListener("toggle", () => { // most are never opened
    if (details.open && details.children.length === 1) details.append(...inside(exchange));
  });
  return el("li", { class: "entry" }, details);
}

function inside({ request, answer }) {
  return [
    el("h3", {}, t("sent")),
    headerList(Object.entries(request.headers).map(([name, value]) => [name, veiled(name, value)])),
    body(request.body),
    answer && el("h3", {}, t("received")),
    answer && headerList(told.map((name) => [name, veiled(name, answer.header(name))]).filter(([, value]) => value)),
    answer && body(answer.text),
    el("div", { class: "row buttons" },
      el("button", { onclick: () => copy(curlOf(request)) }, t("copyCurl")),
      request.headers["Idempotency-Key"] && el("button", { onclick: () => again(request) }, t("sendAgain"))),
  ].filter(Boolean);
}

function headerList(pairs) {
  return el("dl", { class: "headers", dir: "ltr" },
    pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function body(text) {
  if (!text) return el("p", { class: "hint" }, t("noBody"));
  return el("pre", { dir: "ltr", tabIndex: 0 }, el("code", {}, colored(text)));
}

/** veiled shortens tokens on the screen. Copied commands have them in full. */
function veiled(name, value) {
  if (!value || (name !== "Authorization" && name !== "X-Cart-Token")) return value;
  return value.length > 12 ? `${value.slice(0, 12)}…${value.slice(-4)}` : value;
}

function kind(answer) {
  if (!answer) return "pending";
  if (answer.ok) return "good";
  return answer.status === 304 ? "same" : answer.status >= 500 || answer.status === 0 ? "bad" : "refused";
}

async function again(request) {
  await send(request);
  afterwards();
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    tell(t("copied"));
  } catch {
    tell(t("copyFailed"));
  }
}
