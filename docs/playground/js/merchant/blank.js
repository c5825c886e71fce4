// What the merchant's tab shows in place of data: that there is none, or why.

import { el } from "../page/dom.js";
import { t } from "../page/language.js";
import { passes, sentenceOf } from "../page/notices.js";

/** blank shows a state. Parts that are left out, or false, are not shown. */
export function blank(title, { code, why, action, role } = {}) {
  return el("div", { class: "blank", role },
    code && el("code", { class: "refusal-code", dir: "ltr" }, code),
    el("p", { class: "blank-title" }, title), why && el("p", { class: "hint" }, why), action);
}

/** failed shows why a read failed. If it may succeed later, a button makes it again. */
export function failed(answer, again, role) {
  return blank(answer.status === 404 ? t("notServed") : sentenceOf(answer),
    { code: answer.code, role, action: passes(answer) && el("button", { onclick: again }, t("again")) });
}
