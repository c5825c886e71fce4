// The panel with the changes feed.

import { demo, happen } from "../demo.js";
import { byId, el } from "../page/dom.js";
import { onLanguage, t } from "../page/language.js";
import { announce, warn } from "../page/notices.js";
import { clock } from "./dates.js";
import { feed, follow, isOn, problem, state, stop } from "./feed.js";
import { isDeletion, whatOf } from "./history.js";
import { session } from "./store.js";

const kept = 50; // rows

let changes = []; // newest first: what is on the screen
let open = () => {};

/** startFeedPanel calls opened with the ID of a row. */
export function startFeedPanel(opened) {
  open = opened;
  byId("feed-switch").addEventListener("click", () => (isOn() ? stop() : follow()));
  byId("feed-happen").addEventListener("click", () => happen().catch((error) => warn(t("happenFailed", { why: error.message }))));
  feed.addEventListener("state", drawState);
  feed.addEventListener("change", ({ detail }) => add(detail));
  onLanguage(draw);
  draw();
}

/** emptyFeedPanel removes the changes of another store. */
export function emptyFeedPanel() {
  changes = [];
  draw();
}

function add(change) {
  changes = [change, ...changes].slice(0, kept);
  const row = rowOf(change);
  row.classList.add("new");
  byId("feed-rows").prepend(row);
  byId("feed-rows").children[kept]?.remove();
  drawState();
  announce(row.textContent);
}

function draw() {
  byId("feed-rows").replaceChildren(...changes.map(rowOf));
  byId("feed-happen").hidden = !demo.backstage || session.store !== "sample";
  drawState();
}

function drawState() {
  byId("feed-switch").ariaChecked = String(isOn());
  byId("feed").dataset.state = state;
  byId("feed-state").textContent = t(`feed_${state}`, { why: problem });
  byId("feed-happen").disabled = state !== "on"; // its change would be part of the first copy
  byId("feed-rows").hidden = changes.length === 0;
  byId("feed-empty").hidden = changes.length > 0;
}

function rowOf(change) {
  const { subscription_id: id, at, event } = change;
  return el("li", { class: "feed-row", "data-event": event },
    el("p", { class: "feed-head" },
      isDeletion(change) ? el("b", {}, `#${id}`)
        : el("button", { class: "link", "aria-label": t("show", { id: `#${id}` }), onclick: () => open(id) }, `#${id}`), " ",
      el("span", { class: "feed-event" }, t(`history_${event}`)), " ",
      el("time", { class: "hint", dateTime: at }, clock(new Date(at)))), " ",
    whatOf(change));
}
