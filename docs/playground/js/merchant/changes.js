// What a change did to a subscription. The feed says how it is now; compared with how it was
// known before, that becomes an event: "renewed", "paid", "canceled".

import { later, sameTime } from "./dates.js";

/** knownOf returns what is kept of a subscription to compare it with its next state. */
export function knownOf(s) {
  return {
    status: s.status,
    current_period_end: s.current_period_end,
    auto_renew: s.auto_renew,
    cancel_at_period_end: s.cancel_at_period_end,
    is_active: s.is_active,
    price: s.price.amount,
    variant: s.variant.id,
    payment_method: s.payment_method && `${s.payment_method.scheme} •••• ${s.payment_method.last_four}`,
  };
}

/**
 * differences returns {member, before, after} for each member that differs. Without a state
 * before there are none: the subscription is new.
 */
export function differences(before, after) {
  if (!before) return [];
  return Object.keys(after)
    .filter((member) => !same(member, before[member], after[member]))
    .map((member) => ({ member, before: before[member], after: after[member] }));
}

const same = (member, a, b) => (member === "current_period_end" ? sameTime(a, b) : a === b);

const events = [
  ["started", (was, is) => !was && is.status === "trialing"],
  ["created", (was) => !was],
  ["activated", (was, is) => was.status === "trialing" && is.status === "active"],
  ["paid", (was, is) => was.status === "past_due" && is.status === "active"],
  ["resumed", (was, is) => was.status === "paused" && is.status === "active"],
  ["failed", (was, is) => was.status !== "past_due" && is.status === "past_due"],
  ["paused", (was, is) => was.status !== "paused" && is.status === "paused"],
  ["expired", (was, is) => was.status !== "expired" && is.status === "expired"],
  ["canceled", (was, is) => was.status !== "canceled" && is.status === "canceled"],
  ["ending", (was, is) => !was.cancel_at_period_end && is.cancel_at_period_end],
  ["renewed", (was, is) => later(is.current_period_end, was.current_period_end)],
  ["changed", () => true],
];

/** eventOf returns the word for a change: the first one of the list above that fits. */
export function eventOf(before, after) {
  return events.find(([, fits]) => fits(before, after))[0];
}
