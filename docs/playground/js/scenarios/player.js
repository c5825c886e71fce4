// Plays a scenario, one step after the other. A step shows a sentence before it runs, and its
// outcome afterwards. The visitor can pause, go step by step, play it again and close it.

import { forgetNewest } from "../log/bar.js";
import { byId } from "../page/dom.js";
import { onLanguage, t } from "../page/language.js";
import { announce } from "../page/notices.js";
import { setNetwork } from "../shop/live.js";
import { drawCard, sentenceOf } from "./card.js";
import { lead, rest, start } from "./pace.js";

/**
 * A play is {name, sign, needs, lends, live, steps}:
 *
 *   name      also the prefix of its texts: <name>_title, <name>_point, <name>_<name of a step or an outcome>
 *   sign      its icon
 *   needs     what the demo must offer (see offers in scenarios.js)
 *   lends     by device: a function that returns the session to start with; default a new guest
 *   live      the device that follows its cart, if any: the others show only what they ask for
 *   steps     what step and proof of step.js make
 */
export class Player {
  #play = null;
  #at = 0; // index of the step that runs; the number of steps at the end
  #outcomes = []; // of the steps so far: {key, values, code, failed}
  #paused = false;
  #wake = () => {}; // ends the current wait
  #hurries = false; // the visitor wants the next step at once
  #running = null; // the promise of the step's outcome
  #run = 0; // so that a play that was closed stops
  #ending = null; // the promise of the end of the last one that was closed

  /** after returns the scenario that follows another, if any. */
  constructor(devices, { showArea, after }) {
    this.devices = devices;
    this.showArea = showArea;
    this.after = after;
    this.card = byId("story");
    onLanguage(() => { if (this.#play) this.#draw(); });
    addEventListener("hashchange", () => this.#follow());
    this.card.addEventListener("keydown", ({ key }) => { if (key === "Escape") this.close(); });
  }

  async start(play) {
    const ending = this.#end();
    const run = this.#run;
    await ending;
    if (run !== this.#run) return; // another one was started meanwhile
    document.documentElement.dataset.playing = play.name;
    this.#play = play;
    this.#at = 0;
    this.#outcomes = [];
    this.#paused = this.#hurries = false;
    this.showArea("store");
    this.#draw();
    this.card.querySelector("[data-part='pause']").focus({ preventScroll: true });
    await this.#lend(play);
    const { a, b } = this.devices;
    const stage = { a: a.cart, b: b.cart, deviceA: a, deviceB: b, state: {} };
    for (this.#at = 0; this.#at < play.steps.length; this.#at++) {
      if (run !== this.#run || !await this.#take(play, stage, run)) return;
      if (this.#outcomes[this.#at].failed) break;
    }
    this.#at = play.steps.length;
    this.#draw();
  }

  /** #take runs the next step. It returns false if the scenario was closed meanwhile. */
  async #take(play, stage, run) {
    const i = this.#at;
    const step = play.steps[i];
    this.#draw();
    if (step.on) this.devices.show(this.devices[step.on]);
    const sentence = t(`${play.name}_${step.name}`);
    announce(i === 0 ? `${t(`${play.name}_point`)} ${sentence}` : sentence);
    if (!this.#hurries) await this.#stay(i === 0 ? start : lead);
    this.#hurries = false;
    if (run !== this.#run) return false;
    this.#running = outcomeOf(play, step, stage);
    const outcome = await this.#running;
    if (run !== this.#run) return false;
    this.#outcomes[i] = outcome;
    this.#draw();
    announce(sentenceOf(outcome));
    if (i + 1 < play.steps.length && !outcome.failed) await this.#stay(rest);
    return run === this.#run;
  }

  /** #follow ends the scenario if the visitor opens another tab. */
  #follow() {
    if (this.#play && byId("store").hidden) this.#end();
  }

  /** close ends the scenario, and shows all of them. */
  async close() {
    if (!this.#play) return;
    const { name } = this.#play;
    const ending = this.#end();
    this.showArea("home");
    document.querySelector(`[data-scenario="${name}"]`).focus();
    await ending;
  }

  /** #end ends the scenario, if one plays, and waits until the visitor has the devices again, also if it is already ending. */
  #end() {
    this.#run++;
    if (this.#play) this.#ending = this.#stop();
    return this.#ending;
  }

  /** #stop waits for the step that runs, because it works with the devices. */
  async #stop() {
    this.#play = null;
    this.#wake();
    this.card.hidden = true;
    delete document.documentElement.dataset.playing;
    for (const { root } of this.devices.all) root.classList.remove("acts");
    await this.#running;
    setNetwork(true); // it may have ended without
    await Promise.all(this.devices.all.map((device) => device.giveBack()));
    for (const { root } of this.devices.all) root.inert = false; // until now, a visitor would change the scenario's carts
    forgetNewest();
  }

  #lend({ lends = {}, live }) {
    for (const { root } of this.devices.all) root.inert = true; // what a visitor does now would disturb the steps
    return Promise.all(this.devices.all.map((device) => device.lend(lends[device.id]?.(), { live: device.id === live })));
  }

  /** #stay leaves a text for ms, or until the visitor goes on. While paused, only the visitor ends it. */
  #stay(ms) {
    return new Promise((done) => {
      const timer = setTimeout(() => { if (!this.#paused) done(); }, ms);
      this.#wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  #draw() {
    const play = this.#play;
    for (const device of this.devices.all) device.root.classList.toggle("acts", play.steps[this.#at]?.on === device.id);
    drawCard(this.card, { play, at: this.#at, outcomes: this.#outcomes, paused: this.#paused, following: this.after(play) }, {
      close: () => this.close(),
      start: (other) => this.start(other),
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

async function outcomeOf({ name }, step, stage) {
  try {
    const [key, values = {}, code = ""] = await step.does(stage);
    return { key: `${name}_${key}`, values, code, failed: false };
  } catch (error) {
    return { key: error.key ?? "surprise", values: { what: error.message }, code: "", failed: true };
  }
}
