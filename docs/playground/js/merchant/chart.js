// The drawing of months: above, the revenue at each month's end as a line; below, what moved it
// as bars. Each has its own scale, because a large store's movements are small.

import { drawn } from "../page/dom.js";
import { compact } from "../page/language.js";
import { monthName } from "./dates.js";

/** up and down are the movements that add to the revenue, and that take from it. */
export const up = ["new", "imported", "reactivated", "expansion"];
export const down = ["contraction", "paused", "churned"];

const line = { from: 18, to: 114 }; // heights, from the top
const bars = { from: 140, to: 228 };
const bottom = 264;

/**
 * chartOf draws rows of GET /subscriptions/metrics, oldest first. choose is called with the row at
 * the pointer, and with the last one when a mouse leaves. Time runs in the direction of reading.
 */
export function chartOf(rows, { width, label, choose }) {
  const step = width / rows.length;
  const start = document.documentElement.dir === "rtl" ? width : 0;
  const x = (i) => Math.abs(start - (i + 0.5) * step);
  const most = ceiling(Math.max(...rows.map(({ mrr }) => mrr ?? 0)));
  const y = (mrr) => line.to - (mrr / most) * (line.to - line.from);
  const gains = Math.max(...rows.map((row) => sum(row, up)));
  const losses = Math.max(...rows.map((row) => sum(row, down)));
  const scale = (bars.to - bars.from) / (gains + losses || 1);
  const zero = bars.from + gains * scale;
  const rule = (at) => drawn("path", { class: "rule", d: `M0 ${at}H${width}` });

  const groups = rows.map((row, i) => drawn("g", { class: "month", "data-month": row.month },
    drawn("rect", { class: "column", x: x(i) - step / 2, y: 0, width: step, height: bars.to + 4 }),
    barsOf(row, { x: x(i), width: Math.min(step * 0.64, 26), zero, scale })));
  const svg = drawn("svg", { class: "months", role: "img", "aria-label": label, width, height: bottom },
    groups, rule(line.from), rule(line.to), rule(zero),
    lineOf(rows, x, y),
    drawn("text", { x: start, y: line.from - 5 }, compact(most, rows[0].currency)),
    gains > 0 ? drawn("text", { x: start, y: bars.from - 5 }, compact(gains, rows[0].currency, "always")) : [],
    rows.map((row, i) => monthLabel(rows, i, x(i), Math.ceil(52 / step))));

  const mark = (i) => {
    groups.forEach((group, at) => group.classList.toggle("chosen", at === i));
    choose(rows[i]);
  };
  groups.forEach((group, i) => group.addEventListener("pointerenter", () => mark(i)));
  svg.addEventListener("pointerleave", ({ pointerType }) => { if (pointerType === "mouse") mark(rows.length - 1); });
  return svg;
}

const sum = (row, moves) => moves.reduce((total, move) => total + (row[move] ?? 0), 0);

/** ceiling returns the next number of one digit, or 0.25 times that. */
function ceiling(n) {
  const unit = 10 ** Math.floor(Math.log10(n || 1));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((digit) => digit * unit).find((round) => round >= n);
}

function barsOf(row, { x, width, zero, scale }) {
  const stack = (moves, direction) => {
    let at = zero;
    return moves.filter((move) => row[move] > 0).map((move) => {
      const height = row[move] * scale;
      at += direction * height;
      return drawn("rect", { "data-move": move, x: x - width / 2, y: direction < 0 ? at : at - height, width, height });
    });
  };
  return [...stack(up, -1), ...stack(down, 1)];
}

/** lineOf draws the months that have a revenue; the running one is a ring at the end. */
function lineOf(rows, x, y) {
  const points = rows.map(({ mrr }, i) => (mrr === null ? null : [x(i), y(mrr)]));
  const first = points.findIndex((point) => point !== null);
  if (first < 0) return [];
  const path = points.slice(first).map((point) => point.join(" ")).join("L");
  const last = points.at(-1);
  return drawn("g", { class: "revenue-line" },
    drawn("path", { class: "area", d: `M${points[first][0]} ${line.to}L${path}L${last[0]} ${line.to}Z` }),
    drawn("path", { class: "stroke", d: `M${path}` }),
    drawn("circle", { cx: last[0], cy: last[1], r: 4 }));
}

/** monthLabel names each nth month back from the last one, the year below the first of each year. */
function monthLabel(rows, i, x, nth) {
  const named = (at) => (rows.length - 1 - at) % nth === 0;
  if (!named(i)) return [];
  const year = rows[i].month.slice(0, 4);
  const before = rows.slice(0, i).findLast((_, at) => named(at));
  const text = [[monthName(rows[i].month), 16]];
  if (before?.month.slice(0, 4) !== year) text.push([year, 31]);
  return text.map(([said, below]) => drawn("text", { class: "at-month", x, y: bars.to + below }, said));
}
