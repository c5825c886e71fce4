// A device follows its cart: it shows changes by others as they happen. The storefront's module reads GET /cart/events.

import { answerOf, begin, browserFetch, end, nothing } from "../api/api.js";
import { language } from "../page/language.js";
import { events } from "../../../storefront.js";
import { headersOf } from "./session.js";

let network = new AbortController(); // aborted while a scenario has no network

/** setNetwork ends all streams, or lets them connect again. */
export function setNetwork(on) {
  if (!on) return network.abort();
  if (!network.signal.aborted) return;
  network = new AbortController();
  dispatchEvent(new Event("online"));
}

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
    if (wanted) this.#follow(this.#stop);
  }

  async #follow(stop) {
    const from = this.cart.device;
    let before; // the cart when it connected last
    let stream; // the exchange of the connection
    const headers = () => {
      before = this.cart.now;
      return headersOf(this.cart.session);
    };
    const connect = async (url, options) => {
      network.signal.throwIfAborted();
      const headers = { "Accept-Language": language(), ...options.headers };
      stream = begin({ request: { method: "GET", path: "/cart/events", url, headers }, from, events: 0 });
      let answer = nothing();
      try {
        const response = await browserFetch(url, { ...options, headers, signal: AbortSignal.any([options.signal, network.signal]) });
        const { ok, status } = response;
        answer = { ...answerOf(status, ok ? "" : await response.text(), (name) => response.headers.get(name)), ok };
        if ([401, 404].includes(status)) stop.abort(); // there is no cart to follow
        return response;
      } finally {
        end(stream, answer);
      }
    };
    for await (const event of events({ headers, signal: stop.signal, fetch: connect })) {
      const text = `event: cart\nid: ${event.id}\ndata: {"version":${event.version}}\n\n`;
      stream.events++;
      stream.answer.text += text;
      end(stream, stream.answer);
      await this.cart.settled(); // the event of the device's own change may come first
      if (stop.signal.aborted) break;
      if (event.version === this.cart.now.version) continue;
      end(begin({ request: stream.request, from, event }), answerOf(200, text, () => null));
      await this.cart.refresh();
    }
    if (this.#stop !== stop) return; // it follows another cart
    this.#followed = "";
    if (this.cart.now !== before) this.#check(); // it may have begun since the service said that there is none
  }
}
