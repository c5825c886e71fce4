// What the steps of all scenarios are made of.

import { demo } from "../demo.js";
import { passes } from "../page/notices.js";

/**
 * step makes a step that the device `on` takes, or none for "". does gets the carts a and b, the devices deviceA and
 * deviceB, and state, which keeps what later steps need. It returns [name, values, code] of the outcome, or throws a
 * Surprise. Names are those of texts: <scenario>_<name>.
 */
export const step = (name, on, does) => ({ name, on, does, proves: false });

/** proof makes the step that proves a scenario's point. */
export const proof = (name, on, does) => ({ name, on, does, proves: true });

/** Surprise says that the service did something that a scenario does not expect. */
export class Surprise extends Error {
  constructor(answer) {
    super([answer.status, answer.code].join(" ").trim());
    this.key = answer.status === 0 ? "offline" : passes(answer) ? "surpriseBusy" : "surprise";
  }
}

/** sure returns the answer to a call. It throws a Surprise unless what the scenario says is true of it. */
export async function sure(asked, isTrue = ({ ok }) => ok) {
  const answer = await asked;
  if (!isTrue(answer)) throw new Surprise(answer);
  return answer;
}

/** layla and yousef are sessions of two customers. */
export const layla = () => ({ jwt: demo.actors[0].jwt });
export const yousef = () => ({ jwt: demo.actors[1].jwt });

/** credits and tickets are products to add. Three tickets are in stock. */
export const credits = (qty) => ({ product_id: 1, qty });
export const tickets = (qty) => ({ product_id: 2, qty });

/** lost is true of an answer that the page has thrown away. */
export const lost = ({ status }) => status === 0;

/** isReplayed is true of an answer that repeats an earlier one. */
export const isReplayed = (answer) => answer.header("Idempotency-Replayed") === "true";
