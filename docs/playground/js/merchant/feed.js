// Follows GET /subscriptions/events, as a store's program does: it reads to the end once, and then
// waits for what comes after its cursor.

import { byId } from "../page/dom.js";
import { passes, sentenceOf } from "../page/notices.js";
import { ask } from "./store.js";

const wait = 25;        // seconds that the service may wait for news
const soonest = 1_000;  // ms between two requests after an error, doubled each time
const slowest = 60_000;
const crowded = 3_000;  // between two requests while the service has too many that wait

/**
 * feed has an event "state" when its state changes, "change" for each event of a subscription, which is the detail, and
 * "news" after those of a request, and after a read to the end that replaces one whose cursor has expired.
 */
export const feed = new EventTarget();

/** state is "off", "reading" (to the end, at first), "on", "waiting" or "refused". */
export let state = "off";

/** problem is the sentence of the service while the state is "waiting" or "refused". */
export let problem = "";

let cursor = "";
let caughtUp = false;
let again = false; // the cursor of an earlier read has expired
let unseen = false; // it runs again when somebody sees the tab
let run = 0; // counts starts and stops, so that a late answer of an old run is dropped
let request = new AbortController();

/** isOn reports whether the feed runs. */
export const isOn = () => ["reading", "on", "waiting"].includes(state);

/** attend ends the feed when nobody sees the tab, and runs it again when somebody does. */
export function attend() {
  if (isSeen()) {
    if (unseen) follow();
  } else if (isOn()) {
    stop();
    unseen = true;
  }
}

const isSeen = () => document.visibilityState === "visible" && !byId("subscriptions").hidden;

/** follow runs the feed until stop. It continues after the last change that it has read. */
export async function follow() {
  unseen = !isSeen();
  if (unseen) return;
  const mine = ++run;
  become(caughtUp ? "on" : "reading");
  let pause = soonest;
  while (mine === run) {
    const began = Date.now();
    const answer = await read();
    if (mine !== run) return;
    if (answer.ok) {
      const news = apply(answer.data);
      pause = soonest;
      if (caughtUp) become("on");
      if (caughtUp && !news && Date.now() - began < soonest) await nap(crowded);
    } else {
      if (!survives(answer)) return;
      await nap(pause);
      pause = Math.min(pause * 2, slowest);
    }
  }
}

const nap = (ms) => new Promise((done) => setTimeout(done, ms));

/** stop ends the feed. It keeps the cursor, so that follow misses nothing. */
export function stop(as = "off") {
  run++;
  unseen = false;
  request.abort();
  become(as);
}

/** forget stops and drops everything that belongs to the store. */
export function forget() {
  stop();
  startAgain();
}

function startAgain(expired = false) {
  again = expired;
  cursor = "";
  caughtUp = false;
}

function read() {
  const query = new URLSearchParams({ limit: "1000" });
  if (cursor) query.set("after", cursor);
  if (caughtUp) query.set("wait", String(wait));
  request = new AbortController();
  return ask(`/subscriptions/events?${query}`, request.signal);
}

/** apply takes in a page of events, and returns how many it has. It reports none until the feed has caught up. */
function apply({ data, next, has_more: more }) {
  if (caughtUp) for (const detail of data) feed.dispatchEvent(new CustomEvent("change", { detail }));
  if (caughtUp ? data.length > 0 : again && !more) feed.dispatchEvent(new Event("news"));
  cursor = next;
  caughtUp ||= !more;
  return data.length;
}

/** survives reports whether the feed continues after an error. */
function survives(answer) {
  if (answer.code === "cursor_expired") {
    startAgain(true);
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
