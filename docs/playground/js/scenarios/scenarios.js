// The scenarios: a list of what they show, and the card that plays one step by step.

import { demo } from "../demo.js";
import { byId, el, icon } from "../page/dom.js";
import { number, onLanguage, t } from "../page/language.js";
import { paceOf } from "./pace.js";
import { Player } from "./player.js";
import { agent } from "./plays/agent.js";
import { atRest } from "./plays/atrest.js";
import { coupon } from "./plays/coupon.js";
import { deepPage } from "./plays/deeppage.js";
import { handover } from "./plays/handover.js";
import { lastItem } from "./plays/lastitem.js";
import { live } from "./plays/live.js";
import { lostAnswer } from "./plays/lostanswer.js";
import { merge } from "./plays/merge.js";
import { offline } from "./plays/offline.js";
import { price } from "./plays/price.js";
import { share } from "./plays/share.js";
import { staleToken } from "./plays/staletoken.js";
import { twoTabs } from "./plays/twotabs.js";
import { undo } from "./plays/undo.js";

/** plays are in the order of the list: what no other cart does comes first. */
export const plays = [lostAnswer, merge, live, offline, agent, lastItem, handover, undo, twoTabs, price, share, coupon, staleToken, atRest, deepPage];

/**
 * startScenarios lets them play on the devices. showArea opens a tab of the page. The result's
 * startLinked starts the one that the page's URL names, such as #play=merge.
 */
export function startScenarios(devices, showArea) {
  const player = new Player(devices, showArea);
  const draw = () => {
    byId("scenarios").replaceChildren(...plays.map((play) => button(play, player)));
    byId("watch-count").textContent = t("scenariosCount", { n: number(plays.length) });
  };
  onLanguage(draw);
  draw();
  startList(player.wide);
  return {
    startLinked() {
      const play = plays.find(({ name }) => location.hash === `#play=${name}`);
      if (play && isOffered(play)) player.start(play);
    },
  };
}

const isOffered = (play) => play.needs.every((need) => offers[need]());

/** startList lets the list open below its button, except in a window that always shows it. */
function startList(wide) {
  const [list, opener] = [byId("scenarios"), byId("watch-open")];
  const place = () => { list.popover = wide.matches ? null : "auto"; };
  wide.addEventListener("change", place);
  place();
  list.addEventListener("beforetoggle", () => {
    const { left, bottom, width } = opener.getBoundingClientRect();
    for (const [name, px] of Object.entries({ left: left + scrollX, bottom: bottom + scrollY, width, room: innerHeight - bottom })) list.style.setProperty(`--opener-${name}`, `${px}px`);
  });
}

function button(play, player) {
  const missing = !isOffered(play);
  return el("li", {}, el("button", {
    class: "scenario", "data-scenario": play.name, "aria-disabled": missing ? "true" : null,
    title: missing ? t("needsDemo") : null,
    onclick: () => {
      if (missing) return;
      if (byId("scenarios").popover) byId("scenarios").hidePopover();
      player.start(play);
    },
  },
  icon("play"),
  el("b", { class: "title" }, t(`${play.name}_title`)), " ",
  el("span", { class: "length" }, t("seconds", { n: number(Math.ceil(paceOf(play).whole / 1000)) })), " ",
  el("span", { class: "point" }, t(`${play.name}_point`))));
}

const offers = {
  actors: () => demo.actors.length === 2,
  expired: () => demo.expiredJWT !== "",
  backstage: () => demo.backstage,
  agent: () => demo.agent && ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname), // the service reads its profile there
  longList: () => demo.longListToken !== "",
};
