// Who is shopping. As in any storefront, the browser keeps the guest's token, also while
// a customer is logged in.

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

/** demo has the tokens that the demo gives this page. They are empty for other services. */
export const demo = { customerJWT: "", apiToken: "" };

/** meetDemo fetches the demo's tokens. Other services answer 404. */
export async function meetDemo() {
  try {
    const response = await fetch(new URL("playground/demo.json", base));
    if (!response.ok) return;
    const lent = await response.json();
    demo.customerJWT = lent.customer_jwt ?? "";
    demo.apiToken = lent.api_token ?? "";
  } catch {
    // unreachable: the first real call reports it
  }
}

/** customerOf returns the customer's id of a JWT without verifying it, or "". */
export function customerOf(jwt) {
  try {
    const bytes = Uint8Array.from(atob(jwt.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return String(JSON.parse(new TextDecoder().decode(bytes)).sub ?? "");
  } catch {
    return "";
  }
}

/** asShopper returns the headers that identify the cart of a call. */
export function asShopper() {
  return given({
    "X-Public-Key": session.publicKey,
    "X-Cart-Token": session.cartToken,
    Authorization: session.jwt && `Bearer ${session.jwt}`,
  });
}

/** asStore returns the headers of a store's own calls. */
export function asStore() {
  return given({ Authorization: session.apiToken && `Bearer ${session.apiToken}` });
}

function given(headers) {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value));
}
