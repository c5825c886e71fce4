// The inside of a row: the call as code, the request, and the response.

import { el } from "../page/dom.js";
import { t } from "../page/language.js";
import { colored } from "./json.js";
import { snippetBox } from "./snippet.js";
import { veiled } from "./veil.js";

const shown = ["ETag", "Idempotency-Replayed", "Retry-After", "WWW-Authenticate", "Allow", "X-Cart-Token", "Durability",
  "RateLimit-Remaining", "X-Request-Id"];

/** detailsOf returns the parts. again repeats a change with the same key. */
export function detailsOf({ request, answer, lost }, again) {
  const received = lost ?? (answer?.status ? answer : null);
  return [
    snippetBox(request),
    el("div", { class: "part" }, el("h3", {}, t("sent")),
      request.headers["Idempotency-Key"] && answer && el("button", { class: "again", onclick: again }, t("sendAgain"))),
    el("p", { class: "start-line", dir: "ltr" }, el("b", {}, request.method), ` ${request.path}`),
    headerList(Object.entries(request.headers)),
    bodyOf(request.body),
    ...(received ? [
      el("div", { class: "part" }, el("h3", {}, t(lost ? "receivedLost" : "received"))),
      lost ? el("p", { class: "hint" }, t("receivedLostLead")) : "",
      el("p", { class: "start-line", dir: "ltr" }, el("b", {}, `HTTP ${received.status}`)),
      headerList(shown.map((name) => [name, received.header(name)]).filter(([, value]) => value)),
      bodyOf(received.text),
    ] : []),
  ];
}

function headerList(pairs) {
  return el("dl", { class: "headers", dir: "ltr" },
    pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, veiled(name, value)))));
}

function bodyOf(text) {
  if (!text) return el("p", { class: "hint" }, t("noBody"));
  return el("pre", { class: "body", dir: "ltr", tabIndex: 0 }, el("code", {}, colored(text)));
}
