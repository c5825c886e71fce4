// Where the log is: at the side of a wide window. In a narrow one, a bar at the bottom
// shows the newest request, and opens the log as a popover.

import { byId } from "../page/dom.js";
import { headOf } from "./row.js";
import { verdictOf } from "./verdict.js";

const followUp = 1000; // ms

let newest = null;

/** startBar makes the log a popover while the window is narrow. */
export function startBar() {
  const wide = matchMedia("(min-width: 70rem)"); // as in log.css
  const place = () => { byId("log-panel").popover = wide.matches ? null : "auto"; };
  wide.addEventListener("change", place);
  place();
}

/**
 * showNewest shows a new exchange in the bar. Streams and the page's opening do not replace what is there, nor does
 * what only follows from it: the events and reads within a second after a change.
 */
export function showNewest(exchange) {
  const { events, from, request, at } = exchange;
  if (events !== undefined || from === "") return;
  if (newest && request.method === "GET" && mayChange(newest) && at - newest.at < newest.ms + followUp) return;
  newest = exchange;
  redrawNewest();
}

/** mayChange reports whether devices read their carts after an exchange: a read can also merge. */
const mayChange = ({ request, answer, event }) => request.method !== "GET" || event || !answer || answer.merge;

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
