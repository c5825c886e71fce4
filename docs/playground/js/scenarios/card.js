// The card of the scenario that plays: its steps, their outcomes and the buttons.

import { el, icon } from "../page/dom.js";
import { number, t } from "../page/language.js";
import { coded } from "../page/notices.js";

/**
 * drawCard shows a scenario.
 *
 * @param {HTMLElement} card
 * @param {{play: object, at: number, outcomes: object[], paused: boolean, following: ?object}} state following: the
 *   scenario that a button at the end starts
 * @param {{close: () => void, start: (play: object) => void, pause: () => void, next: () => void}} actions
 */
export function drawCard(card, state, actions) {
  const { play, at } = state;
  const ended = at >= play.steps.length;
  const focused = card.contains(document.activeElement) ? document.activeElement.dataset.part : null;
  card.hidden = false;
  card.classList.toggle("ended", ended);
  card.replaceChildren(
    el("div", { class: "heading" },
      icon(play.sign),
      el("p", { class: "of" }, t(`${play.name}_title`)),
      el("span", { class: "progress" }, ended ? t("storyEnded") : t("stepOf", { n: number(at + 1), of: number(play.steps.length) })),
      el("button", { class: "plain sign", "data-part": "close", "aria-label": t("closeScenario"), onclick: actions.close }, icon("close"))),
    el("h2", { id: "story-title" }, t(`${play.name}_point`)),
    el("ol", { class: "steps", tabIndex: 0, "data-part": "steps", "aria-labelledby": "story-title" },
      play.steps.map((step, i) => stepOf(step, i, state))),
    el("div", { class: "row" }, ended ? endOf(state, actions) : controls(state, actions)));
  if (focused) (card.querySelector(`[data-part="${focused}"]`) ?? card.querySelector(".primary")).focus({ preventScroll: true });
  card.querySelector(".latest").scrollIntoView({ block: "nearest" });
}

function stepOf(step, i, { play, at, outcomes }) {
  const outcome = outcomes[i];
  const phase = outcome ? (outcome.failed ? "failed" : "done") : i === at ? "current" : "ahead";
  const latest = i === (at < play.steps.length ? at : outcomes.length - 1);
  return el("li", { class: `step ${phase}${latest ? " latest" : ""}`, "data-n": number(i + 1), "aria-current": i === at ? "step" : null },
    el("p", {}, t(`${play.name}_${step.name}`)),
    outcome && came(outcome));
}

function came(outcome) {
  const tone = outcome.failed ? "bad" : outcome.code ? "warm" : "good";
  return el("div", { class: `came ${tone}` }, icon(tone === "good" ? "check" : "alert"), coded(outcome.code, sentenceOf(outcome)));
}

/** sentenceOf says an outcome. A value that is a function depends on the page's language. */
export function sentenceOf({ key, values }) {
  return t(key, Object.fromEntries(Object.entries(values).map(([name, value]) => [name, shown(value)])));
}

function shown(value) {
  if (typeof value === "function") return value();
  return typeof value === "number" ? number(value) : value;
}

function endOf({ play, following }, { start, close }) {
  return [
    el("button", { "data-part": "again", onclick: () => start(play) }, icon("replay"), t("playAgain")),
    el("button", { class: following ? null : "primary", "data-part": "done", onclick: close }, t("done")),
    following && el("button", { class: "primary", "data-part": "following", onclick: () => start(following) },
      t("nextScenario", { title: t(`${following.name}_title`) })),
  ];
}

function controls({ paused }, { pause, next }) {
  return [
    el("button", { "data-part": "pause", onclick: pause }, icon(paused ? "play" : "pause"), t(paused ? "resume" : "pause")),
    el("button", { class: "primary", "data-part": "next", onclick: next }, t("nextStep"), icon("next")),
  ];
}
