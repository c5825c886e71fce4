// A device's cart: what the device knows about it, and the calls that read and change it.
// Calls run one after the other, so that each change applies to the cart that the shopper saw.

import { call, newKey } from "../api/api.js";
import { currency } from "./sample.js";
import { headersOf } from "./session.js";

/**
 * Cart dispatches "change" when what it knows changes, and "forget" when the device shows
 * another shopper's cart.
 *
 *   now         the cart, as GET /cart has it; null before it is opened
 *   validation  the last check, until the cart changes
 *   summary     tax by rate, shipping and payment methods, read at checkout
 *   edited      the line that the last edit made, until the cart changes
 *   changed     by line: when it was added or got another quantity, in ms
 *   outcome     the outcome of the last call (see outcomeOf), or null
 *   loseNext    whether the page throws away the answer to the next change
 */
export class Cart extends EventTarget {
  now = null;
  summary = null;
  validation = null;
  edited = null;
  changed = {};
  outcome = null;
  loseNext = false;

  #tag = ""; // ETag of the cart that is shown
  #sent = ""; // the guest's token of the last call
  #last = Promise.resolve();

  /** device is the name of the caller in the log. */
  constructor(device, session) {
    super();
    this.device = device;
    this.session = session;
  }

  /** show turns to the cart of another session, or of the session with another JWT, after the calls of the current shopper. */
  show({ session = this.session, jwt = session.jwt }) {
    return this.#inTurn(() => {
      session.jwt = jwt;
      this.session = session;
      this.#forget();
      return this.#open();
    });
  }

  /** #forget drops what is known about the previous shopper's cart. */
  #forget() {
    Object.assign(this, { validation: null, edited: null, changed: {}, outcome: null });
    this.#tag = "";
    this.dispatchEvent(new Event("forget"));
  }

  /** nameOf is the name of a line, or its id. */
  nameOf(itemId) {
    return this.now?.items.find((item) => item.id === itemId)?.name ?? itemId;
  }

  /** open shows the cart. It reads it unless it is of a guest whom the service does not know. */
  open() {
    return this.#inTurn(() => this.#open());
  }

  #open() {
    const { cartToken, publicKey, jwt } = this.session;
    if (cartToken || publicKey || jwt) return this.#load();
    this.now = fresh;
    return null;
  }

  /** load reads the cart. If it has not changed, the response is 304. */
  load() {
    return this.#inTurn(() => this.#load());
  }

  async #load() {
    const answer = await this.#call("GET", "/cart", { headers: this.#tag ? { "If-None-Match": this.#tag } : {} });
    this.#accept(answer, () => this.load());
    return answer;
  }

  /** refresh reads a cart that another device has changed. What the last outcome offers can still be taken. */
  async refresh() {
    const { outcome } = this;
    await this.load();
    if (!["merged", "offered", "shared"].includes(outcome?.kind)) return;
    this.outcome ??= outcome;
    this.#changed();
  }

  /** isStored reports whether the service stores the cart that is shown. */
  get isStored() {
    return this.#tag !== "" && this.now.version > 0;
  }

  /** settled waits until no change waits for its answer, or for being repeated. */
  async settled() {
    await this.#last;
    while (this.outcome?.kind === "unanswered") await new Promise((done) => this.addEventListener("change", done, { once: true }));
  }

  // Changes that need no more than their request. A refused operation of apply does not stop the others. takeOver moves
  // the cart of a link into this one; keepAgent lets the agent that made it go on with it. undoMerge takes out of a
  // customer's cart what a merge brought, and the session gets it back as the guest's cart.
  add = (body, options) => this.#change("POST", "/cart/add", { body, ...options });
  remove = ({ id }) => this.#change("DELETE", `/cart/items/${encodeURIComponent(id)}`);
  clear = () => this.#change("DELETE", "/cart/clear");
  redeem = (coupon) => this.#change("POST", "/cart/coupon", { body: { coupon } });
  dropCoupon = (code) => this.#change("DELETE", `/cart/coupon?code=${encodeURIComponent(code)}`);
  apply = (ops, options) => this.#change("POST", "/cart/ops", { body: { mode: "each", ops }, ...options });
  addShared = (code) => this.apply([{ op: "add_shared", code }]);
  takeOver = (code, { keepAgent = false, ...options } = {}) =>
    this.#change("POST", "/cart/handover/redeem", { body: { code, keep_agent: keepAgent }, ...options });
  undoMerge = (id, options) => this.#change("POST", "/cart/merge/undo", { body: { id }, ...options });

  // Links to the cart, and to a copy of its lines. The log shows their answers.
  handOver = () => this.#inTurn(() => this.#call("POST", "/cart/handover"));
  share = ({ key = newKey(), lose } = {}) => this.#inTurn(() => this.#call("POST", "/cart/share", { key, lose }));
  unshare = (code) => this.#inTurn(() => this.#call("DELETE", `/cart/share/${encodeURIComponent(code)}`, { key: newKey() }));
  read = (path) => this.#call("GET", path);

  /** preview offers the cart of a link, and previewShared its lines. They change nothing. */
  preview = (code) =>
    this.#offer("offered", code, () => this.#call("POST", "/cart/handover/redeem", { body: { code, preview: true } }));
  previewShared = (code) => this.#offer("shared", code, () => this.#call("GET", `/cart/share/${encodeURIComponent(code)}`));

  #offer(kind, code, ask) {
    return this.#inTurn(async () => {
      const answer = await ask();
      this.outcome = answer.ok ? { kind, answer, code } : outcomeOf(answer, () => this.#offer(kind, code, ask));
      return answer;
    });
  }

  /** setQuantity changes the quantity of a line. seen is the ETag of the cart that the shopper saw. */
  setQuantity = (item, quantity, { seen } = {}) => this.#patch(item, { quantity }, seen);

  /**
   * edit changes members of a line. Another line absorbs it if the two become equal. The
   * caller shows a refusal.
   */
  async edit(item, members) {
    const others = this.now.items.map(({ id }) => id).filter((id) => id !== item.id);
    const answer = await this.#patch(item, members);
    if (answer.ok) {
      const id = answer.data.item_id;
      this.edited = { id, absorbed: others.includes(id) };
      this.#changed();
    }
    return answer;
  }

  /** fixAll sends the fixes of the last check, and checks again. */
  async fixAll() {
    for (let fixes = fixesOf(this.validation); fixes.length > 0; fixes = fixes.slice(atOnce)) {
      const answer = await this.apply(fixes.slice(0, atOnce));
      if (!answer.ok) return answer;
    }
    return this.checkOut();
  }

  /**
   * checkOut checks the cart, and if it is valid reads the summary. 400 cart_invalid is a
   * result, not an error. It returns the answer of the check.
   */
  checkOut() {
    return this.#inTurn(async () => {
      const answer = await this.#call("GET", "/cart/validate");
      if (!answer.ok && answer.code !== "cart_invalid") {
        this.#accept(answer, () => this.checkOut());
        return answer;
      }
      this.validation = answer.data;
      this.outcome = { kind: "checked", answer };
      const summary = answer.ok ? await this.#call("GET", "/cart/summary") : answer;
      if (summary.ok) this.summary = summary.data;
      return answer;
    });
  }

  dismiss() {
    this.outcome = null;
    this.#changed();
  }

  /** setLoseNext says whether the page throws away the answer to the next change. */
  setLoseNext(lose) {
    this.loseNext = lose;
    this.#changed();
  }

  /** #patch changes a line, but only if the cart is still the one that is shown. */
  #patch(item, body, seen) {
    return this.#change("PATCH", `/cart/items/${encodeURIComponent(item.id)}`, { body, ifMatch: true, seen });
  }

  #change(method, path, { body, ifMatch = false, seen, key = newKey(), lose } = {}) {
    return this.#inTurn(async () => {
      // Without a token, a guest's change and its repeat would be of two carts.
      if (!this.session.cartToken && !this.session.jwt) await this.#load();
      const tag = seen ?? this.#tag;
      const headers = ifMatch && tag ? { "If-Match": tag } : {};
      const losing = lose ?? this.loseNext;
      this.loseNext = false;
      const answer = await this.#call(method, path, { body, key, headers, lose: losing });
      // With the same key, a change that was applied after all is not applied twice.
      this.#accept(answer, () => this.#change(method, path, { body, ifMatch, seen, key }));
      return answer;
    });
  }

  #call(method, path, { headers, ...options } = {}) {
    const before = this.now?.version || null;
    this.#sent = this.session.cartToken;
    return call(method, path, { ...options, headers: { ...headersOf(this.session), ...headers }, from: this.device, before });
  }

  /** #inTurn runs a job after the earlier ones. */
  #inTurn(job) {
    const turn = this.#last.then(job).finally(() => this.#changed());
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** #accept updates what is known from any response. again repeats the call. */
  #accept(answer, again) {
    this.#keepToken(answer);
    this.outcome = outcomeOf(answer, again);
    if (answer.data?.items) {
      this.#notice(answer.data);
      this.now = answer.data;
      this.#tag = answer.header("ETag") ?? "";
      Object.assign(this, { validation: null, edited: null });
    }
    if (answer.status === 401 && this.session.jwt) {
      this.session.jwt = "";
      this.dispatchEvent(new Event("logout"));
    }
  }

  /** #notice finds the lines that differ from those that are shown. */
  #notice({ items, item_id: edited }) {
    if (!this.#tag) return; // another shopper's
    for (const { id, quantity } of items) {
      const before = this.now.items.find((item) => item.id === id);
      if (id === edited || before?.quantity !== quantity) this.changed[id] = Date.now();
    }
  }

  #keepToken(answer) {
    const token = answer.header("X-Cart-Token") ?? answer.data?.undone?.guest_cart ?? answer.data?.cart_token;
    if (token && token !== this.#sent) this.session.cartToken = token; // another tab may have a newer one than was sent
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

const fresh = {
  version: 0, currency, count: 0, total: 0, items: [], coupons: [], discounts: [], offers: [], buyer: {}, expires_at: null,
};

const atOnce = 50; // operations in a list

/** fixesOf returns the operations that mend what a check found. */
export const fixesOf = ({ issues, warnings }) => [...issues, ...warnings].map(({ fix }) => fix).filter(Boolean);

/**
 * outcomeOf returns what the shopper should know about the outcome of a call: kind "merged",
 * "undone", "replayed", "partly", "conflict", "ended" or "refused" with the answer, or "unanswered" with again,
 * which repeats the call with the same key. null: nothing special.
 */
function outcomeOf(answer, again) {
  if (answer.merge) return { kind: "merged", answer };
  if (answer.data?.undone) return { kind: "undone", answer };
  if (answer.header("Idempotency-Replayed") === "true") return { kind: "replayed", answer };
  if (answer.data?.outcomes?.some(({ code }) => code)) return { kind: "partly", answer };
  if (answer.ok || answer.status === 304) return null;
  if (answer.code === "version_mismatch") return { kind: "conflict", answer };
  if (answer.status === 401) return { kind: "ended", answer };
  // A success that is not the service's JSON is no response either.
  if (answer.status < 400 || answer.status === 429 || answer.status >= 500) return { kind: "unanswered", answer, again };
  return { kind: "refused", answer };
}
