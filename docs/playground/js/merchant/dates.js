// Dates of subscriptions. The service writes them in UTC and in three forms; this page shows
// them in UTC and in its own language.

import { tag } from "../page/language.js";

const listed = /^(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d))?$/; // "2025-11-20" and "2025-11-20 10:00:00"

function dateOf(text) {
  const parts = listed.exec(text);
  return new Date(parts ? `${parts[1]}T${parts[2] ?? "00:00:00"}Z` : text);
}

const format = (style) => new Intl.DateTimeFormat(tag(), { ...style, timeZone: "UTC", calendar: "gregory" });

const asDay = { year: "numeric", month: "short", day: "numeric" };

export function day(text) {
  return format(asDay).format(dateOf(text));
}

/** period returns two dates as briefly as the language allows: "Mar 12 – Apr 12, 2026". */
export function period(from, to) {
  return format(asDay).formatRange(dateOf(from), dateOf(to));
}

/** minute returns the date and the time. */
export function minute(text) {
  return format({ ...asDay, hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(dateOf(text));
}

/** shortDay returns the day without its year: "Mar 12". */
export function shortDay(text) {
  return format({ month: "short", day: "numeric" }).format(dateOf(text));
}

/** month returns "March 2026" for "2026-03". */
export function month(text) {
  return format({ year: "numeric", month: "long" }).format(dateOf(`${text}-01`));
}

/** monthName returns "Mar" for "2026-03". */
export function monthName(text) {
  return format({ month: "short" }).format(dateOf(`${text}-01`));
}

/** clock returns the time of day where the reader is, to the second. */
export function clock(date) {
  return new Intl.DateTimeFormat(tag(), { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }).format(date);
}

/** sameTime reports whether two dates are equal, in any form. */
export function sameTime(a, b) {
  return a === b || Boolean(a && b) && dateOf(a).getTime() === dateOf(b).getTime();
}

/** later reports whether a is after b. */
export function later(a, b) {
  return dateOf(a) > dateOf(b);
}
