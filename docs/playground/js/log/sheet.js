// Where the log is: at the side of a wide window. In a narrow one, a bar at the bottom
// shows the newest request and opens the log as a sheet.

import { byId, el } from "../page/dom.js";
import { t } from "../page/language.js";
import { headOf } from "./row.js";
import { sign } from "./signs.js";
import { verdictOf } from "./verdict.js";

const followUp = 1000; // ms

let newest = null;
let heard = null; // the newest event

/** startSheet connects the bar and the sheet. */
export function startSheet() {
  const sheet = byId("log-sheet");
  const wide = matchMedia("(min-width: 70rem)"); // as in log.css
  const place = () => {
    sheet.close();
    (wide.matches ? byId("log") : sheet).append(byId("log-panel"));
  };
  wide.addEventListener("change", place);
  place();
  byId("log-bar").append(sign("up"));
  byId("log-close").append(sign("close"));
  byId("log-bar").addEventListener("click", () => {
    sheet.append(byId("live")); // screen readers ignore the page behind a modal dialog
    sheet.showModal();
    byId("log-close").focus();
  });
  sheet.addEventListener("close", () => document.body.append(byId("live")));
  byId("log-close").addEventListener("click", () => sheet.close());
  sheet.addEventListener("click", ({ target }) => { if (target === sheet) sheet.close(); }); // its backdrop
}

/**
 * showNewest shows a new exchange in the bar, or none for null. Streams, the page's opening, and what only follows from a
 * change do not replace what is there.
 */
export function showNewest(exchange) {
  if (exchange?.events !== undefined || exchange?.from === "") return;
  if (exchange?.event) heard = exchange;
  if (exchange && [newest, heard].some((earlier) => earlier && follows(exchange, earlier))) return;
  newest = exchange;
  redrawNewest();
}

/** follows reports whether an exchange is an event after a change, or a read after a change or an event on the same device. */
function follows({ request, from, event, at }, earlier) {
  const isChange = earlier.request.method !== "GET" || earlier.answer?.merge || (!earlier.answer && event); // it may merge
  const isRead = request.method === "GET" && from === earlier.from && (isChange || earlier.event);
  return (event ? isChange : isRead) && at - earlier.at < earlier.ms + followUp;
}

/** redrawNewest draws it again after its answer or in another language. */
export function redrawNewest() {
  const box = byId("log-newest");
  box.dataset.kind = newest ? verdictOf(newest).kind : "";
  box.replaceChildren(...(newest ? headOf(newest) : [el("span", { class: "none" }, t("logEmpty"))]));
}
