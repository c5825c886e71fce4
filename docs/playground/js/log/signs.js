// The small drawings of the log: one for each kind of verdict, and those of its controls.

import { drawn } from "../page/dom.js";

const check = "M3.5 8.5 6.6 11.5 12.5 4.5";
const equals = "M4 6.2h8M4 9.8h8";
const exclamation = "M8 3v6.2M8 12.6v.2";
const cross = "m4.2 4.2 7.6 7.6m0-7.6-7.6 7.6";

const paths = {
  waiting: "M3.6 8h.1M8 8h.1M12.4 8h.1",
  changed: check,
  valid: check,
  replayed: "M3 3.6v3.6h3.6M3.3 7.2A5 5 0 1 1 4.2 11.3",
  unchanged: equals,
  notModified: equals,
  read: "M8 3v9.4M4.4 8.8 8 12.4l3.6-3.6",
  merged: "M4 3v1.8c0 3 4 2.6 4 5.4V13m4-10v1.8c0 3-4 2.6-4 5.4",
  refused: "M8 2.6a5.4 5.4 0 1 0 0 10.8A5.4 5.4 0 0 0 8 2.6ZM4.2 4.2l7.6 7.6",
  conflict: "M4 6.2h8M4 9.8h8M10.4 3.4 5.6 12.6",
  unauthenticated: "M4 7.4h8v5.6H4zM5.8 7.4V5.6a2.2 2.2 0 0 1 4.4 0v1.8",
  busy: "M8 2.6a5.4 5.4 0 1 0 0 10.8A5.4 5.4 0 0 0 8 2.6ZM8 5.2V8l2 1.4",
  invalid: exclamation,
  failed: exclamation,
  lost: "M1.8 8h3m6.4 0h3M6.2 6.2l3.6 3.6m0-3.6L6.2 9.8",
  unreachable: cross,
  live: "M7.9 8h.2M5.4 5.4a3.7 3.7 0 0 0 0 5.2m5.2-5.2a3.7 3.7 0 0 1 0 5.2M3.2 3.2a6.8 6.8 0 0 0 0 9.6m9.6-9.6a6.8 6.8 0 0 1 0 9.6",
  event: "M9 2.6 4.2 9h3.4L7 13.4 11.8 7H8.4z",
  unknown: "M5.7 5.9a2.3 2.3 0 1 1 3.5 2C8.3 8.5 8 8.9 8 9.8m0 2.8v.2",
  merchant: "M3 7v6h10V7M2.4 6.4 3.6 3h8.8l1.2 3.4c0 1.6-2.6 1.6-2.8 0-.2 1.6-2.6 1.6-2.8 0-.2 1.6-2.6 1.6-2.8 0-.2 1.6-2.8 1.6-2.8 0ZM6.6 13V9.8h2.8V13",
  agent: "M3.4 6.4h9.2v6.2H3.4zM8 6.4V3.2M6.2 9.4h.1M9.7 9.4h.1",
  up: "M3.6 10 8 5.6l4.4 4.4",
  down: "M3.6 6 8 10.4 12.4 6",
  close: cross,
};

/** sign draws one of them. It is hidden from screen readers. */
export function sign(name) {
  return drawn("svg", { class: "sign-drawing", viewBox: "0 0 16 16", "aria-hidden": "true" }, drawn("path", { d: paths[name] }));
}
