// Who is shopping. As in any storefront, the browser keeps the guest's token, also while
// a customer is logged in.

import { lasting, passing } from "../page/storage.js";

export const session = {
  get cartToken() { return lasting.get("cart_token"); },
  set cartToken(token) { lasting.set("cart_token", token); },

  get publicKey() { return lasting.get("public_key"); },
  set publicKey(key) { lasting.set("public_key", key); },

  get jwt() { return passing.get("jwt"); },
  set jwt(token) { passing.set("jwt", token); },
};

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

function given(headers) {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value));
}
