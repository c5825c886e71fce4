// Plays a scenario, one step after the other. A step shows a sentence before it runs, and its
// outcome afterwards. The visitor can pause, go step by step, play it again and close it.

import { setNetwork } from "../api/live.js";
import { byId } from "../page/dom.js";
import { onLanguage, t } from "../page/language.js";
import { announce, passes } from "../page/notices.js";
import { drawCard, sentenceOf } from "./card.js";
import { paceOf } from "./pace.js";

const shortest = 0.3; // of the time that a text stays, which is shorter if its step took long

/**
 * A play is {name, sign, needs, area, lends, steps}:
 *
 *   name      also the prefix of its texts: <name>_title, <name>_point and <name>_<name of a step>
 *   sign      its icon
 *   needs     what the demo must offer (see offers in scenarios.js)
 *   area      the tab that shows it; without it, the shop
 *   lends     by device: a function that returns the session to start with; default a new guest
 *   live      the device that follows its cart, if any: the others show only what they ask for
 *   steps     each is {name, on, proves, does}: the device that acts, if any; true for the one that
 *             proves the point; and what it does. does returns [key, values, code] of the outcome,
 *             or throws a Surprise if the service did something else
 */
export class Player {
  #play = null;
  #at = 0; // index of the step that runs; the number of steps at the end
  #outcomes = []; // of the steps so far: {key, values, failed}
  #paused = false;
  #wake = () => {}; // ends the current wait
  #due = 0; // when it ends
  #hurries = false; // the visitor wants the next step at once
  #running = null; // the promise of the step's outcome
  #state = {}; // what the steps keep for later ones
  #run = 0; // so that a play that was closed stops
  #ending = null; // the promise of the end of the last one that was closed

  constructor(devices, showArea) {
    this.devices = devices;
    this.showArea = showArea;
    this.card = byId("story");
    this.wide = matchMedia("(min-width: 90rem)"); // as in scenarios.css
    this.wide.addEventListener("change", () => this.#place());
    onLanguage(() => { if (this.#play) this.#draw(); });
    addEventListener("hashchange", () => this.#follow());
    for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => this.#follow());
    this.card.addEventListener("keydown", ({ key }) => { if (key === "Escape") this.close(); });
  }

  async start(play) {
    const pace = paceOf(play);
    this.#due = performance.now();
    const run = ++this.#run;
    await this.#end();
    if (run !== this.#run) return; // another one was started meanwhile
    this.#play = play;
    this.#at = 0;
    this.#outcomes = [];
    this.#paused = false;
    this.#hurries = false;
    this.#state = {};
    document.documentElement.dataset.playing = play.name;
    this.showArea(play.area ?? "store");
    this.#place();
    this.#draw();
    this.card.querySelector("[data-part='pause']").focus({ preventScroll: true });
    const fault = !play.area && await this.#lend(play).then(() => false, (error) => error);
    for (const [i, step] of play.steps.entries()) {
      if (run !== this.#run) return;
      this.#at = i;
      this.#draw();
      if (step.on) this.devices.show(this.devices[step.on]);
      const sentence = t(`${play.name}_${step.name}`);
      announce(i === 0 ? `${t(`${play.name}_point`)} ${sentence}` : sentence);
      const { lead, rest } = pace.of(i);
      if (!this.#hurries) await this.#stay(lead);
      this.#hurries = false;
      if (run !== this.#run) return;
      this.#running = outcomeOf(step, this.#stage(), i === 0 && fault);
      const outcome = await this.#running;
      if (run !== this.#run) return;
      this.#outcomes[i] = outcome;
      this.#draw();
      announce(sentenceOf(outcome));
      if (outcome.failed) break;
      if (rest) await this.#stay(rest);
    }
    this.#at = play.steps.length;
    this.#draw();
  }

  /** #follow ends the scenario if the visitor opens the other tab. */
  #follow() {
    if (this.#play && byId(this.#play.area ?? "store").hidden) this.close();
  }

  /** close ends the scenario and returns the devices to the person at the page. */
  async close() {
    if (!this.#play) return;
    const { name, area } = this.#play;
    const run = ++this.#run;
    await this.#end();
    const focused = document.activeElement;
    if (run !== this.#run || focused !== document.body && !this.card.contains(focused)) return; // the visitor went on
    const button = document.querySelector(`[data-scenario="${name}"]`);
    (area ? byId(`tab-${area}`) : button.checkVisibility() ? button : byId("watch-open")).focus({ preventScroll: true });
  }

  /** #end ends the scenario, if one plays, and waits until the visitor has the devices again, also if it is already ending. */
  #end() {
    if (this.#play) this.#ending = this.#stop(this.#play);
    return this.#ending;
  }

  /** #stop waits for the step that runs, because it works with the devices. */
  async #stop(play) {
    this.#play = null;
    this.#wake();
    this.card.hidden = true;
    delete document.documentElement.dataset.playing;
    for (const { root } of this.devices.all) root.classList.remove("acts");
    await this.#running;
    setNetwork(true); // it may have ended without
    if (!play.area) await Promise.all(this.devices.all.map((device) => device.giveBack()));
    for (const { root } of this.devices.all) root.inert = false; // until now, a visitor would change the scenario's carts
  }

  /** #place puts the card above the list in a very wide window, otherwise above the log. */
  #place() {
    const focused = document.activeElement;
    if (this.wide.matches && !this.#play?.area) byId("watch").prepend(this.card);
    else byId("log").before(this.card);
    if (this.card.contains(focused)) focused.focus({ preventScroll: true }); // which an element loses when it moves
  }

  #lend({ lends = {}, live }) {
    for (const { root } of this.devices.all) root.inert = true; // what a visitor does now would disturb the steps
    return Promise.all(this.devices.all.map((device) => device.lend(lends[device.id]?.(), { live: device.id === live })));
  }

  /** #stage is what a step works with. */
  #stage() {
    const { a, b } = this.devices;
    return { a: a.cart, b: b.cart, deviceA: a, deviceB: b, state: this.#state };
  }

  /** #stay leaves a text for ms, or until the visitor goes on. While paused, only the visitor ends it. */
  async #stay(ms) {
    const now = performance.now();
    this.#due = Math.max(this.#due + ms, now + ms * shortest);
    await new Promise((done) => {
      const timer = setTimeout(() => { if (!this.#paused) done(); }, this.#due - now);
      this.#wake = () => {
        clearTimeout(timer);
        this.#due = performance.now();
        done();
      };
    });
  }

  #draw() {
    const ended = this.#at >= this.#play.steps.length;
    for (const device of this.devices.all) device.root.classList.toggle("acts", !ended && this.#play.steps[this.#at].on === device.id);
    drawCard(this.card, { play: this.#play, at: this.#at, outcomes: this.#outcomes, paused: this.#paused }, {
      close: () => this.close(),
      again: () => this.start(this.#play),
      pause: () => this.#togglePause(),
      next: () => {
        this.#hurries = true;
        this.#wake();
      },
    });
  }

  #togglePause() {
    this.#paused = !this.#paused;
    if (!this.#paused) this.#wake();
    this.#draw();
  }
}

/** Surprise says that the service did something that a scenario does not expect. */
export class Surprise extends Error {
  constructor(answer) {
    super([answer.status, answer.code].join(" ").trim());
    this.key = answer.status === 0 ? "offline" : passes(answer) ? "surpriseBusy" : "surprise";
  }
}

/** expect throws a Surprise unless what the scenario says is true of an answer. */
export function expect(answer, isTrue) {
  if (!isTrue) throw new Surprise(answer);
}

async function outcomeOf(step, stage, fault) {
  try {
    if (fault) throw fault;
    const [key, values = {}, code = ""] = await step.does(stage);
    return { key, values, code, failed: false };
  } catch (error) {
    return { key: error.key ?? "surprise", values: { what: error.message }, code: "", failed: true };
  }
}
