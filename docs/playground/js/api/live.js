// The events of a cart: GET /cart/events, read by the storefront's module.

import { answerOf, begin, browserFetch, end, nothing } from "./api.js";
import { language } from "../page/language.js";
import { events } from "../../../storefront.js";

let network = new AbortController(); // aborted while a scenario has no network

/** setNetwork ends all streams, or lets them connect again. */
export function setNetwork(on) {
  if (!on) return network.abort();
  if (!network.signal.aborted) return;
  network = new AbortController();
  dispatchEvent(new Event("online"));
}

/**
 * follow yields the events of a cart, {id, version, stream}, until there is no cart to follow. stream is the exchange
 * of the connection.
 *
 * @param {() => object} headers that identify the cart
 * @param {{from: string, signal: AbortSignal}} options
 */
export async function* follow(headers, { from, signal }) {
  const stop = new AbortController();
  signal.addEventListener("abort", () => stop.abort());
  let stream;
  async function connect(url, options) {
    network.signal.throwIfAborted();
    const headers = { "Accept-Language": language(), ...options.headers };
    stream = begin({ request: { method: "GET", path: "/cart/events", url, headers }, from, events: 0 });
    let answer = nothing();
    try {
      const response = await browserFetch(url, { ...options, headers, signal: AbortSignal.any([options.signal, network.signal]) });
      const { ok, status } = response;
      answer = { ...answerOf(status, ok ? "" : await response.text(), (name) => response.headers.get(name)), ok };
      if ([401, 404].includes(status)) stop.abort();
      return response;
    } finally {
      end(stream, answer);
    }
  }
  for await (const event of events({ headers, signal: stop.signal, fetch: connect })) {
    stream.events++;
    stream.answer.text += textOf(event);
    end(stream, stream.answer);
    yield { ...event, stream };
  }
}

const textOf = ({ id, version }) => `event: cart\nid: ${id}\ndata: {"version":${version}}\n\n`;

/** tellEvent makes an event an exchange of its own. */
export function tellEvent({ id, version, stream: { request, from } }) {
  end(begin({ request, from, event: { id, version } }), answerOf(200, textOf({ id, version }), () => null));
}
