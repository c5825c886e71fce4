// What opens the page: a response gets lost, the phone sends again, and only a naive cart counts
// twice. It shows its end until somebody plays it. Then the numbers are those of the service's responses.

import { call, newKey } from "../api/api.js";
import { byId } from "../page/dom.js";
import { number, t } from "../page/language.js";
import { headersOf, newSession } from "../shop/session.js";
import { animate } from "./timeline.js";

/** startHero plays it on a click. A visitor who prefers less motion gets the end at once. */
export function startHero() {
  const stage = byId("stage");
  const button = byId("stage-switch");
  const animations = animate(stage);
  const end = () => { for (const animation of animations) animation.finish(); };

  button.addEventListener("click", async () => {
    if (button.ariaBusy === "true") return;
    button.ariaBusy = "true";
    for (const animation of animations) {
      animation.pause();
      animation.currentTime = 0;
    }
    stage.classList.add("played");
    const counts = await measure();
    stage.classList.toggle("failed", !counts);
    if (!counts || matchMedia("(prefers-reduced-motion: reduce)").matches) end();
    else for (const animation of animations) animation.play();
    if (counts) for (const place of stage.querySelectorAll("[data-count]")) place.textContent = number(counts[place.dataset.count]);
    await Promise.all(animations.map(({ finished }) => finished));
    button.ariaBusy = "false";
    const word = button.querySelector("span");
    word.dataset.t = "playAgain";
    word.textContent = t("playAgain");
  });
  end();
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

function add(session, options) {
  return call("POST", "/cart/add", { body: { product_id: 1, qty: 1 }, headers: headersOf(session), ...options });
}

const keeping = (answer) => ({ ...newSession(), cartToken: answer.header("X-Cart-Token") ?? "" });
