// Notices: messages that do not belong to one place on the page.

import { pauses } from "../api/api.js";
import { byId, el, icon } from "./dom.js";
import { number, t } from "./language.js";

/** announce reads a text to users of a screen reader; others see the change itself. */
export function announce(text) {
  byId("live").textContent = "";
  requestAnimationFrame(() => { byId("live").textContent = text; });
}

/** tell shows a notice for 5 seconds. */
export function tell(text) {
  const notice = show(text, "passing");
  setTimeout(() => notice.remove(), 5000);
}

/** warn shows an error until it is dismissed. again repeats the call. */
export function warn(text, again) {
  show(text, "alert", again);
}

/** sentenceOf returns the message of a failed response. */
export function sentenceOf(answer) {
  return answer.status === 0 ? t("offline") : answer.message || `HTTP ${answer.status}`;
}

/** coded puts the code of an answer, if there is one, after its sentence. */
export function coded(code, sentence) {
  return el("p", { class: "coded" }, sentence, code && [" ", el("code", { dir: "ltr" }, code)]);
}

/** passes reports whether the same call may succeed later. */
export function passes(answer) {
  return answer.status === 0 || answer.status === 429 || answer.status >= 500;
}

function show(text, kind, again) {
  for (const same of byId("notices").children) if (same.dataset.text === text) same.remove();
  const notice = el("div", { class: `notice ${kind}`, role: kind === "alert" ? "alert" : "status", "data-text": text },
    el("p", {}, text),
    again && el("button", { onclick: () => { notice.remove(); again(); } }, t("again")),
    el("button", { class: "plain sign", "aria-label": t("dismiss"), onclick: () => notice.remove() }, icon("close")));
  byId("notices").append(notice);
  return notice;
}

pauses.addEventListener("pause", ({ detail: { answer, wait } }) => {
  tell(t("busy", { message: sentenceOf(answer), n: number(wait) }));
});
