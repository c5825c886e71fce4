// What the page has to say outside the place where it happened.

import { pauses } from "./api.js";
import { byId, el, icon } from "./dom.js";
import { number, t } from "./language.js";

/** announce tells a screen reader what a sighted person sees anyway. */
export function announce(text) {
  byId("live").textContent = "";
  requestAnimationFrame(() => { byId("live").textContent = text; });
}

/** tell shows a passing remark. */
export function tell(text) {
  const notice = show(text, "passing");
  setTimeout(() => notice.remove(), 5000);
}

/** warn shows what went wrong until it is dismissed; again repeats the call. */
export function warn(text, again) {
  show(text, "alert", again);
}

/** sentenceOf says what an answer that is not good means. */
export function sentenceOf(answer) {
  return answer.status === 0 ? t("offline") : answer.message || `HTTP ${answer.status}`;
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
