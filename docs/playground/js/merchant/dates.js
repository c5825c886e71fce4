// Dates of subscriptions. The service writes them in UTC and in three forms; this page shows
// them in UTC and in its own language.

import { tag } from "../page/language.js";

const listed = /^(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d))?$/; // "2025-11-20" and "2025-11-20 10:00:00"

function dateOf(text) {
  const parts = listed.exec(text);
  return new Date(parts ? `${parts[1]}T${parts[2] ?? "00:00:00"}Z` : text);
}

const format = (style) => new Intl.DateTimeFormat(tag(), { timeZone: "UTC", calendar: "gregory", ...style });

const asDay = { year: "numeric", month: "short", day: "numeric" };
const asMinute = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

export const day = (text) => format(asDay).format(dateOf(text));

/** period returns two dates as briefly as the language allows: "Mar 12 – Apr 12, 2026". */
export const period = (from, to) => format(asDay).formatRange(dateOf(from), dateOf(to));

/** minute returns the date and the time. */
export const minute = (text) => format({ ...asDay, ...asMinute }).format(dateOf(text));

/** month returns "March 2026" for "2026-03". */
export const month = (text) => format({ year: "numeric", month: "long" }).format(dateOf(`${text}-01`));

/** shortMonth returns "Mar 26" for "2026-03". */
export const shortMonth = (text) => format({ year: "2-digit", month: "short" }).format(dateOf(`${text}-01`));

/** clock returns the time of day where the reader is, to the second. */
export const clock = (date) => format({ timeZone: undefined, ...asMinute, second: "2-digit" }).format(date);
