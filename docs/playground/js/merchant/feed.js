// Follows GET /subscriptions/changes, as a store's program that keeps a copy does: it
// reads to the end once, and then asks every few seconds for what came after its cursor.

import { byId } from "../page/dom.js";
import { passes, sentenceOf } from "../page/notices.js";
import { differences, eventOf, knownOf } from "./changes.js";
import { ask } from "./session.js";

const every = 3_000;       // between two requests
const slowest = 60_000;    // between two requests while the service is busy or unreachable
const idleAfter = 120_000; // without activity of the reader and of the store

/**
 * feed has an event "state" when its state changes, and "change" for each change. The detail
 * of a change is {id, event, at, now, was, differences}; of a deletion, {id, event, at}.
 */
export const feed = new EventTarget();

/** state is "off", "reading" (to the end, at first), "on", "waiting", "idle" or "refused". */
export let state = "off";

/** problem is the sentence of the service while the state is "waiting" or "refused". */
export let problem = "";

const known = new Map(); // id → what knownOf returned
let cursor = "";
let caughtUp = false;
let run = 0;       // counts starts and stops, so that a late answer of an old run is dropped
let wake = () => {};
let early = false; // whether the next request must not wait
let activeAt = 0;

export function startFeed() {
  for (const input of ["pointerdown", "keydown"]) addEventListener(input, () => { activeAt = Date.now(); }, { passive: true });
  document.addEventListener("visibilitychange", () => wake());
}

/** isOn reports whether the feed runs. */
export const isOn = () => ["reading", "on", "waiting"].includes(state);

/** follow runs the feed until stop. It continues after the last change that it has read. */
export async function follow() {
  const mine = ++run;
  activeAt = Date.now();
  become(caughtUp ? "on" : "reading");
  let pause = every;
  while (mine === run) {
    early = false;
    if (watched()) {
      const answer = await readToTheEnd(mine);
      if (mine !== run) return;
      if (answer.ok) become("on");
      else if (!await survives(answer)) return;
      pause = answer.ok ? every : Math.min(pause * 2, slowest);
    }
    if (!early) await nap(pause);
    if (mine === run && Date.now() - activeAt > idleAfter) stop("idle");
  }
}

/** stop ends the feed. It keeps the cursor, so that follow misses nothing. */
export function stop(as = "off") {
  run++;
  wake();
  become(as);
}

/** forget stops and drops everything that belongs to the store. */
export function forget() {
  stop();
  known.clear();
  cursor = "";
  caughtUp = false;
}

/** checkNow makes the next request immediately. */
export function checkNow() {
  early = true;
  wake();
}

/** caughtUpNow resolves when the feed has read to the end, or has stopped. */
export function caughtUpNow() {
  if (caughtUp || !isOn()) return Promise.resolve();
  return new Promise((done) => feed.addEventListener("state", done, { once: true })).then(caughtUpNow);
}

const watched = () => document.visibilityState === "visible" && !byId("subscriptions").hidden;

function nap(ms) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    wake = () => {
      clearTimeout(timer);
      done();
    };
  });
}

async function readToTheEnd(mine) {
  for (;;) {
    const query = new URLSearchParams({ limit: "1000" });
    if (cursor) query.set("after", cursor);
    const answer = await ask(`/subscriptions/changes?${query}`);
    if (mine !== run || !answer.ok) return answer;
    apply(answer.data);
    cursor = answer.data.next;
    if (!answer.data.has_more) {
      caughtUp = true;
      return answer;
    }
  }
}

// Until the feed has caught up, it learns how the subscriptions are and reports nothing.
function apply({ deleted, data }) {
  for (const { id, deleted_at: at } of deleted) {
    known.delete(id);
    if (caughtUp) report({ id, event: "deleted", at });
  }
  for (const now of data) {
    const was = known.get(now.id);
    const is = knownOf(now);
    known.set(now.id, is);
    if (caughtUp) report({ id: now.id, event: eventOf(was, is), at: now.updated_at, now, was, differences: differences(was, is) });
  }
}

function report(change) {
  activeAt = Date.now();
  feed.dispatchEvent(new CustomEvent("change", { detail: change }));
}

/** survives reports whether the feed continues after an error. */
async function survives(answer) {
  if (answer.code === "cursor_expired") { // read everything again
    cursor = "";
    caughtUp = false;
    known.clear();
    become("reading");
    return true;
  }
  problem = sentenceOf(answer);
  if (passes(answer)) {
    become("waiting");
    return true;
  }
  stop("refused");
  return false;
}

function become(next) {
  if (state === next) return;
  state = next;
  feed.dispatchEvent(new Event("state"));
}
