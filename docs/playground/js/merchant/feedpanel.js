// The panel with the changes feed.

import { demo, happen } from "../demo.js";
import { byId, el } from "../page/dom.js";
import { counted, onLanguage, t } from "../page/language.js";
import { announce, warn } from "../page/notices.js";
import { clock, day } from "./dates.js";
import { caughtUpNow, checkNow, feed, follow, isOn, problem, state, stop } from "./feed.js";
import { session } from "./session.js";
import { statusBadge } from "./status.js";

const kept = 50; // rows

const changes = []; // newest first: what is on the screen
let unseen = 0; // changes since the list was loaded
let open = () => {};
let refresh = () => {};

/** startFeedPanel calls opened with the ID of a row, and refreshed to load the list again. */
export function startFeedPanel({ opened, refreshed }) {
  open = opened;
  refresh = refreshed;
  byId("feed-switch").addEventListener("click", () => (isOn() ? stop() : follow()));
  byId("feed-happen").addEventListener("click", letHappen);
  byId("feed-refresh").addEventListener("click", () => refresh());
  feed.addEventListener("state", drawState);
  feed.addEventListener("change", ({ detail }) => add(detail));
  onLanguage(draw);
  draw();
}

/** emptyFeedPanel removes the changes of another store. */
export function emptyFeedPanel() {
  changes.length = 0;
  unseen = 0;
  draw();
}

/** feedIsSeen is called when the list shows everything that the feed has reported. */
export function feedIsSeen() {
  unseen = 0;
  drawRefresh();
}

async function letHappen() {
  const button = byId("feed-happen");
  button.ariaDisabled = "true";
  try {
    if (!isOn()) follow();
    await caughtUpNow(); // otherwise the change would be part of the first copy
    await happen();
    checkNow();
  } catch (error) {
    warn(t("happenFailed", { why: error.message }));
  } finally {
    button.ariaDisabled = "false";
  }
}

function add(change) {
  change.seen = new Date();
  changes.unshift(change);
  changes.length = Math.min(changes.length, kept);
  unseen++;
  const row = rowOf(change);
  row.classList.add("new");
  byId("feed-rows").prepend(row);
  while (byId("feed-rows").children.length > kept) byId("feed-rows").lastChild.remove();
  drawState();
  announce(`#${change.id}: ${sentenceOf(change)}`);
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
  byId("feed-rows").hidden = changes.length === 0;
  byId("feed-empty").hidden = changes.length > 0;
  drawRefresh();
}

function drawRefresh() {
  byId("feed-refresh").hidden = unseen === 0;
  byId("feed-unseen").textContent = counted("refreshAfter", unseen);
}

function rowOf(change) {
  const gone = change.event === "deleted";
  return el("li", { class: "feed-row", "data-event": change.event },
    el("p", { class: "feed-head" },
      gone ? el("b", {}, `#${change.id}`) : el("button", { class: "link", "aria-label": t("show", { id: `#${change.id}` }), onclick: () => open(change.id) }, `#${change.id}`),
      el("span", { class: "feed-event" }, sentenceOf(change)),
      el("time", { class: "hint", dateTime: change.at }, clock(change.seen))),
    !gone && change.differences.length > 0 && el("ul", { class: "differences" }, change.differences.map(differenceOf)));
}

function sentenceOf({ event, now }) {
  return t(`event_${event}`, { date: now ? day(now.current_period_end) : "" });
}

function differenceOf({ member, before, after }) {
  return el("li", {},
    el("code", { dir: "ltr", lang: "en" }, member),
    el("span", { class: "from-to" },
      el("span", { class: "was" }, shown(member, before)), el("span", { class: "arrow", role: "img", "aria-label": t("becomes") }), shown(member, after)));
}

function shown(member, value) {
  if (value === null || value === undefined) return t("none");
  if (member === "status") return statusBadge(value);
  if (member === "current_period_end") return el("bdi", {}, day(value));
  return el("bdi", {}, typeof value === "boolean" ? t(value ? "yes" : "no") : String(value));
}
