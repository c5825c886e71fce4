// A device: a small storefront with a session of its own. It has the products on a shelf,
// its cart, and below them the outcome of the last call, the total and the checkout.

import { byId, redraw } from "../page/dom.js";
import { language, money, number, onLanguage, t } from "../page/language.js";
import { Account } from "./account.js";
import { startBasket } from "./basket.js";
import { Cart } from "./cart.js";
import { Live } from "./live.js";
import { outcomeNotes } from "./outcome.js";
import { newSession, storedSession } from "./session.js";
import { Shelf } from "./shelf.js";

const signs = { a: "phone", b: "laptop" };

export class Device {
  #own; // the visitor's session

  /** id is "a" or "b", also in the log. The device is appended to parent. */
  constructor(id, parent) {
    this.id = id;
    this.#own = storedSession(id);
    this.root = byId("device").content.cloneNode(true).firstElementChild;
    this.root.id = `device-${id}`;
    this.root.classList.add(`device-${id}`);
    this.part("name").id = `device-${id}-name`;
    this.root.setAttribute("aria-labelledby", `device-${id}-name`);
    this.part("letter").textContent = id.toUpperCase();
    this.part("sign").setAttribute("href", `#art-${signs[id]}`);
    parent.append(this.root);

    this.cart = new Cart(id, this.#own);
    this.live = new Live(this.cart);
    this.shelf = new Shelf(this);
    startBasket(this);
    this.account = new Account(this);
    this.part("lose").addEventListener("click", () => this.cart.setLoseNext(!this.cart.loseNext));
    this.part("checkout").addEventListener("click", () => this.cart.checkOut());
    this.cart.addEventListener("change", () => this.#draw());
    this.cart.addEventListener("forget", () => this.root.querySelector("dialog")?.close());
    this.#keepFocus();
    onLanguage(() => { if (this.cart.now) this.#draw(); });
  }

  /** part is an element of the device's template. */
  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  /** become switches to the customer of a JWT, or to the guest for "". */
  become(jwt) {
    return this.cart.show({ jwt });
  }

  /** lend starts a new session on the device, such as { jwt }, until giveBack. live: the device follows its cart. */
  lend(as, { live }) {
    this.live.on = live;
    return this.cart.show({ session: newSession(as) });
  }

  /** giveBack restores the visitor's session. */
  giveBack() {
    this.live.on = true;
    return this.cart.show({ session: this.#own });
  }

  get isLent() {
    return this.cart.session !== this.#own;
  }

  /** #keepFocus moves the focus to the cart if the focused element was redrawn away. */
  #keepFocus() {
    let within = false;
    document.addEventListener("focusin", ({ target }) => { within = this.root.contains(target); });
    document.addEventListener("pointerdown", ({ target }) => { within &&= this.root.contains(target); });
    this.cart.addEventListener("change", () => {
      if (within && document.activeElement === document.body) this.part("basket").focus({ preventScroll: true });
    });
  }

  #draw() {
    const { now, loseNext } = this.cart;
    this.part("lose").setAttribute("aria-pressed", String(loseNext));
    this.#drawOutcome();
    if (!now) return;
    this.root.classList.toggle("bare", now.items.length === 0);
    this.part("sum").textContent = money(now.total, now.currency);
    this.part("count").textContent = number(now.count);
    this.part("count").setAttribute("aria-label", t("itemsInCart", { n: number(now.count) }));
  }

  /** #drawOutcome draws only an outcome that has changed, so that a screen reader reads it once. It scrolls into view. */
  #drawOutcome() {
    const { now, outcome } = this.cart;
    const place = this.part("outcome");
    const shown = JSON.stringify(outcome && [language(), outcome.kind, outcome.answer.text, now?.version, outcome.answer.status]);
    if (place.dataset.shown === shown) return;
    place.dataset.shown = shown;
    redraw(place, () => outcomeNotes(this.cart), place);
    if (outcome) place.scrollIntoView({ block: "nearest" });
  }
}
