// What opens the page: a response gets lost, the phone sends again, and only a naive cart counts
// twice. It plays once by itself, and the numbers are those of the service's responses.

import { call, newKey } from "../api/api.js";
import { byId } from "../page/dom.js";
import { number, t } from "../page/language.js";
import { headersOf, newSession } from "../shop/session.js";
import { animate } from "./timeline.js";

/** startHero plays it, except for a visitor who follows a link or prefers less motion. They get its last frame. */
export function startHero() {
  const stage = byId("stage");
  const button = byId("stage-switch");
  const animations = animate(stage);
  const [first] = animations;
  let playing = false;
  let measured = false;
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  async function play() {
    playing = true;
    measured = false;
    for (const animation of animations) animation.currentTime = 0;
    hold();
    const counts = await measure();
    stage.classList.toggle("failed", !counts);
    if (!counts) return end();
    for (const place of stage.querySelectorAll("[data-count]")) place.textContent = number(counts[place.dataset.count]);
    measured = true;
    hold();
  }

  /** hold lets time go on only while somebody wants to watch, and can. */
  function hold() {
    const runs = playing && measured && !document.hidden;
    for (const animation of animations) if (runs) animation.play(); else animation.pause();
    draw();
  }

  function end() {
    playing = false;
    for (const animation of animations) animation.finish();
    draw();
  }

  function draw() {
    const [key, sign] = playing ? ["pause", "pause"] : first.playState === "finished" ? [measured ? "playAgain" : "heroPlay", measured ? "replay" : "play"] : ["resume", "play"];
    button.querySelector("use").setAttribute("href", `#art-${sign}`);
    const word = button.querySelector("span");
    word.dataset.t = key;
    word.textContent = t(key);
  }

  button.addEventListener("click", () => {
    if (first.playState === "finished") return play();
    playing = !playing;
    hold();
  });
  first.addEventListener("finish", end);
  document.addEventListener("visibilitychange", () => { if (playing) hold(); });
  still.addEventListener("change", () => { if (still.matches && playing && measured) end(); });
  if (location.hash || still.matches) end();
  else play();
}

/**
 * measure adds an item to two new carts, and sends each addition again. It returns what the
 * carts count, or null if the service does not do what the animation shows.
 */
async function measure() {
  const [ours, naive] = await Promise.all([withKey(), withoutKey()]);
  return ours === 1 && naive?.join() === "1,2" ? { ours, first: naive[0], naive: naive[1] } : null;
}

async function withKey() {
  const scenario = "heroOurs"; // in the log
  const read = await call("GET", "/cart", { scenario });
  if (!read.ok) return null;
  const session = keeping(read);
  const key = newKey();
  await add(session, { scenario, key, lose: true });
  let again = await add(session, { scenario, key });
  if (again.ok && !isReplayed(again)) again = await add(session, { scenario, key }); // a busy service refused the lost one
  return isReplayed(again) ? again.data.count : null;
}

const isReplayed = (answer) => answer.header("Idempotency-Replayed") === "true";

async function withoutKey() {
  const scenario = "heroNaive";
  const first = await add(newSession(), { scenario });
  if (!first.ok) return null;
  const second = await add(keeping(first), { scenario });
  return second.ok ? [first.data.count, second.data.count] : null;
}

const add = (session, options) => call("POST", "/cart/add", { body: { product_id: 1, qty: 1 }, headers: headersOf(session), ...options });

const keeping = (answer) => ({ ...newSession(), cartToken: answer.header("X-Cart-Token") ?? "" });
