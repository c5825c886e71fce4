// The cart that the page shows, and the calls that change it. Changes run one after the
// other, so that each one applies to the cart that the shopper saw.

import { call, newKey } from "../api/api.js";
import { announce, passes, sentenceOf, tell, warn } from "../page/notices.js";
import { asShopper, session } from "./session.js";
import { onLanguage, t } from "../page/language.js";

/** events has an event "change" for every change of state. */
export const events = new EventTarget();

export const state = {
  cart: null,       // as GET /cart has it; null before the first answer
  summary: null,    // tax, shipping and payment methods, of the same cart
  validation: null, // of the last check, until the cart changes
  merge: null,      // report of the last merge, until dismissed
  refusals: {},     // by line: why its last change was refused
  edited: null,     // the line that the last edit made, until the cart changes
};

const tags = { cart: "", summary: "" }; // ETags of what is shown
let waiting = 0;
let last = Promise.resolve();

/** nameOf is the name of a line or product in the cart, or its id. */
export function nameOf(itemId) {
  return state.cart?.items.find((item) => item.id === itemId)?.name ?? itemId;
}

/** load reads the cart and its summary. If it has not changed, the response is 304. */
export function load() {
  return inTurn(async () => {
    const answer = await call("GET", "/cart", { headers: { ...asShopper(), ...unlessStill(tags.cart) } });
    accept(answer);
    if (!answer.ok && answer.status !== 304 && !ended(answer)) warn(sentenceOf(answer), load);
    return answer;
  });
}

/** forget drops the state of the previous shopper's cart, and has an event "forget". */
export function forget() {
  Object.assign(state, { validation: null, merge: null, refusals: {}, edited: null });
  Object.assign(tags, { cart: "", summary: "" });
  events.dispatchEvent(new Event("forget"));
}

/** add adds a product. The caller shows a refusal. */
export function add(body) {
  return change("POST", "/cart/add", { body });
}

/** setQuantity changes the quantity of a line. The line shows a refusal. */
export async function setQuantity(item, quantity) {
  const answer = await patch(item, { quantity });
  if (refusedByRule(answer)) refuse(item.id, answer);
  return answer;
}

/**
 * edit changes members of a line. Another line absorbs it if the two become equal. The
 * caller shows a refusal.
 */
export async function edit(item, members) {
  const others = state.cart.items.map(({ id }) => id).filter((id) => id !== item.id);
  const answer = await patch(item, members);
  if (answer.ok) {
    const id = answer.data.item_id;
    state.edited = { id, absorbed: others.includes(id), at: Date.now() };
    changed();
  }
  return answer;
}

/** patch changes a line, but only if the cart is still the one that is shown. */
async function patch(item, body) {
  const answer = await change("PATCH", `/cart/items/${encodeURIComponent(item.id)}`, { body, ifMatch: true });
  if (answer.code === "version_mismatch") tell(t("changedElsewhere", { message: answer.message }));
  return answer;
}

export async function remove(item) {
  const answer = await change("DELETE", `/cart/items/${encodeURIComponent(item.id)}`);
  if (answer.ok) announce(t("removed", { name: item.name }));
  return answer;
}

export async function clear() {
  const answer = await change("DELETE", "/cart/clear");
  if (answer.ok) announce(t("cleared"));
  return answer;
}

export function redeem(coupon) {
  return change("POST", "/cart/coupon", { body: { coupon } });
}

export function dropCoupon() {
  return change("DELETE", "/cart/coupon");
}

/** validate checks the cart before checkout. 400 cart_invalid is a result, not an error. */
export function validate() {
  return inTurn(async () => {
    const answer = await call("GET", "/cart/validate", { headers: asShopper() });
    accept(answer);
    if (answer.ok || answer.code === "cart_invalid") state.validation = answer.data;
    else if (!ended(answer)) warn(sentenceOf(answer), validate);
    return answer;
  });
}

/** refusedByRule reports whether the error belongs next to the shopper's input. */
export function refusedByRule(answer) {
  return answer.status >= 400 && answer.status < 500 && answer.status !== 401 && answer.status !== 429 &&
    answer.code !== "version_mismatch";
}

export function dismissMerge() {
  state.merge = null;
  changed();
}

function change(method, path, { body, ifMatch = false, key = newKey() } = {}) {
  return inTurn(async () => {
    const headers = asShopper();
    if (ifMatch && tags.cart) headers["If-Match"] = tags.cart;
    const answer = await call(method, path, { body, key, headers });
    accept(answer);
    // With the same key, a change that was applied after all is not applied twice.
    if (passes(answer)) warn(sentenceOf(answer), () => change(method, path, { body, ifMatch, key }));
    return answer;
  });
}

function refuse(id, answer) {
  state.refusals[id] = Object.values(answer.errors).flat().join(" ") || answer.message;
  announce(state.refusals[id]);
  changed();
}

/** inTurn runs a job after the earlier ones. The last one reads the summary. */
function inTurn(job) {
  waiting++;
  const turn = last.then(async () => {
    try {
      return await job();
    } finally {
      waiting--;
      changed();
    }
  });
  last = turn.then(summarize, summarize);
  return turn;
}

async function summarize() {
  if (waiting > 0 || !state.cart) return;
  const answer = await call("GET", "/cart/summary", { headers: { ...asShopper(), ...unlessStill(tags.summary) } });
  if (answer.ok) {
    state.summary = answer.data;
    tags.summary = answer.header("ETag") ?? "";
    note(answer);
  }
  changed();
}

const unlessStill = (tag) => (tag ? { "If-None-Match": tag } : {});

/** accept updates the state from any response. */
function accept(answer) {
  note(answer);
  if (answer.data?.items) {
    state.cart = answer.data;
    tags.cart = answer.header("ETag") ?? "";
    Object.assign(state, { validation: null, refusals: {}, edited: null });
  }
  if (ended(answer) && session.jwt) {
    session.jwt = "";
    warn(t("sessionEnded", { message: answer.message }));
    events.dispatchEvent(new Event("logout"));
  }
}

/** note keeps the guest's token and the merge report of a response. */
function note(answer) {
  const token = answer.header("X-Cart-Token") ?? answer.data?.cart_token;
  if (token) session.cartToken = token;
  if (answer.data?.merge) state.merge = { ...answer.data.merge };
}

const ended = (answer) => answer.status === 401;

function changed() {
  events.dispatchEvent(new Event("change"));
}

// The ETag depends on the language, so the cart is read again.
onLanguage(() => { if (state.cart) load(); });

// Another tab or device may have changed the cart meanwhile.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && state.cart) load();
});
