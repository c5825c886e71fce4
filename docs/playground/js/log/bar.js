// Where the log is: at the side of a wide window. In a narrow one, a bar at the bottom
// shows the newest request, and opens the log as a popover.

import { byId } from "../page/dom.js";
import { headOf } from "./row.js";
import { verdictOf } from "./verdict.js";

const followUp = 1000; // ms

let newest = null;
let heard = null; // the newest event

/** startBar makes the log a popover while the window is narrow. */
export function startBar() {
  const wide = matchMedia("(min-width: 70rem)"); // as in log.css
  const place = () => { byId("log-panel").popover = wide.matches ? null : "auto"; };
  wide.addEventListener("change", place);
  place();
}

/**
 * showNewest shows a new exchange in the bar. Streams and their events do not replace what is there, nor does a read that
 * follows from it.
 */
export function showNewest(exchange) {
  if (exchange.event) heard = exchange;
  if (exchange.event || exchange.events !== undefined || isFollowUp(exchange)) return;
  newest = exchange;
  redrawNewest();
}

/** isFollowUp reports whether an exchange is a read on a device soon after its change, its merge or an event. */
function isFollowUp({ request, from, at }) {
  return request.method === "GET" && [newest, heard].some((earlier) => earlier?.from === from &&
    (earlier.event || earlier.request.method !== "GET" || earlier.answer?.merge) && at - earlier.at < earlier.ms + followUp);
}

/** forgetNewest empties the bar. */
export function forgetNewest() {
  newest = null;
  redrawNewest();
}

/** redrawNewest draws it again after its answer or in another language. */
export function redrawNewest() {
  const box = byId("log-newest");
  byId("log-bar").hidden = !newest;
  box.dataset.kind = newest ? verdictOf(newest).kind : "";
  box.replaceChildren(...(newest ? headOf(newest) : []));
}
