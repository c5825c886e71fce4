// The scenarios: a card for each on the page's first tab, and the card that plays one step by step.

import { demo } from "../demo.js";
import { byId, el, icon } from "../page/dom.js";
import { number, onLanguage, t } from "../page/language.js";
import { lengthOf } from "./pace.js";
import { Player } from "./player.js";
import { agent, handover, live, merge, share, undo } from "./plays/carts.js";
import { lostAnswer, offline, staleToken, twoTabs } from "./plays/requests.js";
import { atRest, coupon, deepPage, lastItem, price } from "./plays/stores.js";

/** plays are in the order of the list: what no other cart does comes first. */
export const plays = [
  lostAnswer, merge, live, offline, agent, lastItem, handover, undo, twoTabs, price, share, coupon, staleToken, atRest, deepPage,
];

/**
 * startScenarios lets them play on the devices. showArea opens a tab of the page. It returns the function that starts the
 * scenario with a name.
 */
export function startScenarios(devices, showArea) {
  const player = new Player(devices, { showArea, after: (play) => plays.slice(plays.indexOf(play) + 1).find(isOffered) });
  const draw = () => byId("scenarios").replaceChildren(...plays.map((play) => cardOf(play, player)));
  onLanguage(draw);
  draw();
  return (name) => {
    const play = plays.find((other) => other.name === name);
    if (play && isOffered(play)) player.start(play);
  };
}

const isOffered = (play) => play.needs.every((need) => offers[need]());

function cardOf(play, player) {
  const missing = !isOffered(play);
  return el("li", {}, el("button", {
    class: "scenario", "data-scenario": play.name, "aria-disabled": missing ? "true" : null,
    title: missing ? t("needsDemo") : null, onclick: () => { if (!missing) player.start(play); },
  },
  icon(play.sign),
  el("b", { class: "title" }, t(`${play.name}_title`)), " ",
  el("span", { class: "length" }, t("seconds", { n: number(Math.ceil(lengthOf(play) / 1000)) })), " ",
  el("span", { class: "point" }, t(`${play.name}_point`))));
}

const offers = {
  actors: () => demo.actors.length === 2,
  expired: () => demo.expired_jwt !== "",
  backstage: () => demo.backstage,
  agent: () => demo.agent && ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname), // the service reads its profile there
  longList: () => demo.long_list_token !== "",
};
