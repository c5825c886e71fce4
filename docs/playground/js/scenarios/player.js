// Plays a scenario, one step after the other. A step shows a sentence before it runs, and its
// outcome afterwards. The visitor can pause, skip a wait, play it again and close it.

import { demo, setProduct } from "../demo.js";
import { byId, el, icon } from "../page/dom.js";
import { number, onLanguage, t } from "../page/language.js";

const pace = { before: 1600, after: 3200 }; // ms to read the sentence, and the outcome

/**
 * A play is {name, sign, needs, area, lends, products, steps}:
 *
 *   name      also the prefix of its texts: <name>_title and <name>_<name of a step>
 *   sign      its icon
 *   needs     what the demo must offer (see offers in scenarios.js)
 *   area      the tab that shows it; without it, the shop
 *   lends     by device: a function that returns the session to start with; default a new guest
 *   products  by id: price and stock to set, at the start and again at the end
 *   steps     each is {name, on, does}: the device that acts, if any, and what it does. does
 *             returns [key, values, code] of the outcome, or throws a Surprise if the service
 *             did something else
 */
export class Player {
  #play = null;
  #at = 0; // index of the step that runs; the number of steps at the end
  #outcomes = []; // of the steps so far: {key, values, failed}
  #paused = false;
  #wake = () => {}; // ends the current wait
  #running = null; // the promise of the step's outcome
  #state = {}; // what the steps keep for later ones
  #run = 0; // so that a play that was closed stops

  constructor(devices, showArea) {
    this.devices = devices;
    this.showArea = showArea;
    this.card = byId("story");
    onLanguage(() => { if (this.#play) this.#draw(); });
    addEventListener("pagehide", () => { if (this.#play) this.#setProducts(this.#play).catch(() => {}); });
    this.card.addEventListener("keydown", ({ key }) => { if (key === "Escape") this.close(); });
  }

  async start(play) {
    const run = ++this.#run;
    await this.#end();
    if (run !== this.#run) return; // another one was started meanwhile
    this.#play = play;
    this.#at = 0;
    this.#outcomes = [];
    this.#paused = false;
    this.#state = {};
    document.documentElement.dataset.playing = play.name;
    this.showArea(play.area ?? "store");
    this.#draw();
    this.card.querySelector("[data-part='pause']").focus({ preventScroll: true });
    const faults = await Promise.allSettled([!play.area && this.#lend(play), this.#setProducts(play)]);
    for (const [i, step] of play.steps.entries()) {
      if (run !== this.#run) return;
      this.#at = i;
      this.#draw();
      if (step.on) this.devices.show(this.devices[step.on]);
      await this.#wait(pace.before);
      if (run !== this.#run) return;
      this.#running = outcomeOf(step, this.#stage(), i === 0 && faults.find((f) => f.reason));
      const outcome = await this.#running;
      if (run !== this.#run) return;
      this.#outcomes[i] = outcome;
      this.#draw();
      if (outcome.failed) break;
      if (i < play.steps.length - 1) await this.#wait(pace.after);
    }
    this.#at = play.steps.length;
    this.#draw();
  }

  /** close ends the scenario and returns the devices to the person at the page. */
  async close() {
    const { name, area } = this.#play;
    this.#run++;
    await this.#end();
    const button = document.querySelector(`[data-scenario="${name}"]`);
    (area ? byId(`tab-${area}`) : button).focus({ preventScroll: true });
  }

  /** #end waits for the step that runs, because it works with the devices. */
  async #end() {
    const play = this.#play;
    if (!play) return;
    this.#play = null;
    this.#wake();
    this.card.hidden = true;
    delete document.documentElement.dataset.playing;
    for (const { root } of this.devices.all) root.classList.remove("acts");
    await this.#running;
    if (!play.area) await Promise.all(this.devices.all.map((device) => device.giveBack()));
    await this.#setProducts(play).catch(() => {});
  }

  #lend({ lends = {} }) {
    return Promise.all(this.devices.all.map((device) => device.lend(lends[device.id]?.())));
  }

  async #setProducts({ products = {} }) {
    if (!demo.backstage) return;
    for (const [id, members] of Object.entries(products)) await setProduct(id, members);
  }

  /** #stage is what a step works with. */
  #stage() {
    const { a, b } = this.devices;
    return { a: a.cart, b: b.cart, deviceA: a, deviceB: b, state: this.#state };
  }

  /** #wait waits for ms, or until the visitor goes on. While paused, only the visitor ends it. */
  async #wait(ms) {
    await new Promise((done) => {
      const timer = setTimeout(() => { if (!this.#paused) done(); }, ms);
      this.#wake = () => { clearTimeout(timer); done(); };
    });
  }

  #draw() {
    const play = this.#play;
    const ended = this.#at >= play.steps.length;
    for (const { id, root } of this.devices.all) root.classList.toggle("acts", !ended && play.steps[this.#at]?.on === id);
    const focused = this.card.contains(document.activeElement) ? document.activeElement.dataset.part : null;
    this.card.hidden = false;
    this.card.replaceChildren(
      el("div", { class: "heading" },
        icon(play.sign),
        el("h2", { id: "story-title" }, t(`${play.name}_title`)),
        el("span", { class: "progress" }, ended ? t("storyEnded") : t("stepOf", { n: number(this.#at + 1), of: number(play.steps.length) })),
        el("button", { class: "plain sign", "data-part": "close", "aria-label": t("closeScenario"), onclick: () => this.close() }, icon("close"))),
      el("ol", { class: "steps", tabIndex: 0, "data-part": "steps", "aria-labelledby": "story-title" }, play.steps.map((step, i) => this.#step(step, i))),
      this.#controls(ended));
    if (focused) (this.card.querySelector(`[data-part="${focused}"]`) ?? this.card.querySelector("[data-part='again']")).focus({ preventScroll: true });
    this.card.querySelector(".current, li:last-child")?.scrollIntoView({ block: "nearest" });
  }

  #step(step, i) {
    const outcome = this.#outcomes[i];
    const phase = outcome ? (outcome.failed ? "failed" : "done") : i === this.#at ? "current" : "ahead";
    const latest = i === (this.#at < this.#play.steps.length ? this.#at : this.#outcomes.length - 1);
    return el("li", { class: `step ${phase}${latest ? " latest" : ""}`, "data-n": number(i + 1), "aria-current": i === this.#at ? "step" : null },
      el("p", {}, t(`${this.#play.name}_${step.name}`)),
      outcome && el("p", { class: "came" }, icon(outcome.failed ? "alert" : "check"),
        el("span", {}, ...(outcome.code ? [el("code", { dir: "ltr" }, outcome.code), " "] : []), t(outcome.key, shown(outcome.values)))));
  }

  #controls(ended) {
    const restart = () => this.start(this.#play);
    if (ended) {
      return el("div", { class: "row" },
        el("button", { "data-part": "again", onclick: restart }, icon("replay"), t("playAgain")),
        el("button", { class: "primary", "data-part": "done", onclick: () => this.close() }, t(this.#play.area ? "close" : "done")));
    }
    return el("div", { class: "row" },
      el("button", { "data-part": "pause", onclick: () => this.#togglePause() },
        icon(this.#paused ? "play" : "pause"), t(this.#paused ? "resume" : "pause")),
      el("button", { class: "primary", "data-part": "next", onclick: () => this.#wake() }, t("nextStep"), icon("next")));
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
    super(`${answer.status} ${answer.code || answer.text.slice(0, 80)}`);
  }
}

/** expect throws a Surprise unless what the scenario says is true of an answer. */
export function expect(answer, isTrue) {
  if (!isTrue) throw new Surprise(answer);
}

async function outcomeOf(step, stage, fault) {
  try {
    if (fault) throw fault.reason;
    const [key, values = {}, code = ""] = await step.does(stage);
    return { key, values, code, failed: false };
  } catch (error) {
    return { key: "surprise", values: { what: error.message }, code: "", failed: true };
  }
}

const shown = (values) => Object.fromEntries(
  Object.entries(values).map(([name, value]) => [name, typeof value === "number" ? number(value) : value]));
