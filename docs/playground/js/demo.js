// What the demo offers to this page in addition to the API. Other services offer none of it.

import { base } from "./api/base.js";

/** demo is what playground/demo.json says. Everything is empty for other services. */
export const demo = {
  customers: [],       // [{id, name: {en, ar}, jwt}]: two customers to log in as
  actors: [],          // two more, whose carts belong to the scenarios
  expired_jwt: "",     // an access token of the first customer that has expired
  api_token: "",       // of the sample store
  long_list_token: "", // of a store with 20,000 subscriptions
  backstage: false,    // whether copyProduct, setProduct and happen work
  agent: false,        // whether callAsAgent works
};

/** meetDemo fetches demo.json. Other services answer 404. */
export async function meetDemo() {
  try {
    const response = await fetch(new URL("playground/demo.json", base));
    if (!response.ok) return;
    const lent = await response.json();
    const customers = lent.customers ?? [];
    Object.assign(demo, lent, { customers: customers.slice(0, 2), actors: customers.slice(2) });
  } catch {
    // unreachable: the first real call reports it
  }
}

/** copyProduct returns the id of a copy of a product, which only this page knows, until 100 newer copies exist. */
export async function copyProduct(id) {
  return (await backstage("POST", `playground/products/${id}`, {})).id;
}

/**
 * setProduct changes a copy of a product, as a merchant would elsewhere.
 *
 * @param {number} id
 * @param {{price?: number, stock?: number|null}} members in major units; stock null is unlimited
 */
export function setProduct(id, members) {
  return backstage("PATCH", `playground/products/${id}`, members);
}

/**
 * happen lets the sample store's billing change one subscription, and returns {id, what}. what
 * is "started", "activated", "renewed", "failed", "paid", "paused", "resumed", "canceled",
 * "expired" or "deleted".
 */
export function happen() {
  return backstage("POST", "playground/subscriptions", {});
}

/**
 * callAsAgent makes a call of the Universal Commerce Protocol outside of the browser, and returns
 * {status, headers, body}.
 */
export function callAsAgent({ method, path, headers, body }) {
  return backstage("POST", "playground/agent", { method, path, headers, body });
}

async function backstage(method, path, body) {
  const response = await fetch(new URL(path, base), {
    method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
  return (await response.json()).data;
}
