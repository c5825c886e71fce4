// The panels of the merchant's tab: each shows what it has read, or why it could not.

import { byId, el, redraw } from "../page/dom.js";
import { onLanguage, t } from "../page/language.js";
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

/**
 * panelOf starts the panel in an element. It returns load, which returns the answer, and clear, which removes what another
 * store has shown.
 *
 * @param {string} id
 * @param {{read: () => Promise, draw: (data: object) => Node[], optional?: boolean}} options read makes the call. draw shows
 *   its data. optional: the panel is hidden if the service does not have the call
 */
export function panelOf(id, { read, draw, optional = false }) {
  const place = byId(id);
  let shown = false;
  let lastAsked = 0;

  async function load() {
    const asked = ++lastAsked;
    place.ariaBusy = "true";
    const answer = await read();
    if (asked !== lastAsked) return answer; // of another store
    place.ariaBusy = "false";
    shown = true;
    place.hidden = optional && answer.status === 404;
    redraw(place, () => (answer.ok ? draw(answer.data) : [failed(answer, load)]));
    return answer;
  }

  onLanguage(() => { if (shown) load(); });
  return {
    load,
    clear() {
      lastAsked++;
      shown = false;
      place.replaceChildren();
    },
  };
}
