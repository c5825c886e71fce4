// A device follows its cart: it shows changes by others as they happen.

import { headersOf } from "./session.js";
import { follow, tellEvent } from "../api/live.js";

export class Live {
  /** on says whether the device follows the cart that it shows. It takes effect when the cart changes. */
  on = true;

  #followed = ""; // the headers of the cart that it follows; "": none
  #stop = new AbortController();

  constructor(cart) {
    this.cart = cart;
    cart.addEventListener("change", () => this.#check());
  }

  #check() {
    const wanted = this.on && this.cart.isStored ? JSON.stringify(headersOf(this.cart.session)) : "";
    if (wanted === this.#followed) return;
    this.#followed = wanted;
    this.#stop.abort();
    this.#stop = new AbortController();
    if (wanted) this.#follow(this.#stop.signal);
  }

  async #follow(signal) {
    let before; // the cart when it connected last
    const headers = () => {
      before = this.cart.now;
      return headersOf(this.cart.session);
    };
    for await (const event of follow(headers, { from: this.cart.device, signal })) {
      await this.cart.settled(); // the event of the device's own change may come first
      if (signal.aborted) return;
      if (event.version === this.cart.now.version) continue;
      tellEvent(event);
      await this.cart.refresh();
    }
    if (signal.aborted) return;
    this.#followed = "";
    if (this.cart.now !== before) this.#check(); // it may have begun since the service said that there is none
  }
}
