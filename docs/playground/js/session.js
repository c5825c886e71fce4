// Who is shopping, as a storefront keeps it: the guest's token stays in the browser,
// also while a customer is logged in.

import { base } from "./base.js";
import { lasting, passing } from "./storage.js";

export const session = {
  get cartToken() { return lasting.get("cart_token"); },
  set cartToken(token) { lasting.set("cart_token", token); },

  get publicKey() { return lasting.get("public_key"); },
  set publicKey(key) { lasting.set("public_key", key); },

  get jwt() { return passing.get("jwt"); },
  set jwt(token) { passing.set("jwt", token); },

  get apiToken() { return passing.get("api_token"); },
  set apiToken(token) { passing.set("api_token", token); },
};

/** demo holds the tokens that the demo lends this page; empty elsewhere. */
export const demo = { customerJWT: "", apiToken: "" };

/** meetDemo asks for what the demo lends. Any other service answers 404. */
export async function meetDemo() {
  try {
    const response = await fetch(new URL("playground/demo.json", base));
    if (!response.ok) return;
    const lent = await response.json();
    demo.customerJWT = lent.customer_jwt ?? "";
    demo.apiToken = lent.api_token ?? "";
  } catch {
    // not reachable: the first real call will say so
  }
}

/** customerOf reads the customer's id out of a JWT, unchecked: "" when it cannot. */
export function customerOf(jwt) {
  try {
    const bytes = Uint8Array.from(atob(jwt.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return String(JSON.parse(new TextDecoder().decode(bytes)).sub ?? "");
  } catch {
    return "";
  }
}

/** asShopper are the headers that say whose cart a call is about. */
export function asShopper() {
  return given({
    "X-Public-Key": session.publicKey,
    "X-Cart-Token": session.cartToken,
    Authorization: session.jwt && `Bearer ${session.jwt}`,
  });
}

/** asStore are the headers of a store's own calls. */
export function asStore() {
  return given({ Authorization: session.apiToken && `Bearer ${session.apiToken}` });
}

function given(headers) {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value));
}
