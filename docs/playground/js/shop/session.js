// Who is shopping on a device. As in any storefront, the device keeps the guest's token
// while a customer is logged in.

import { lasting, passing } from "../page/storage.js";

/**
 * storedSession is the session of a device. The guest's token and the store stay in the
 * browser; the customer's JWT stays until the tab is closed.
 */
export function storedSession(device) {
  return {
    get cartToken() { return lasting.get(`${device}.cart_token`); },
    set cartToken(token) { lasting.set(`${device}.cart_token`, token); },

    get publicKey() { return lasting.get(`${device}.public_key`); },
    set publicKey(key) { lasting.set(`${device}.public_key`, key); },

    get jwt() { return passing.get(`${device}.jwt`); },
    set jwt(token) { passing.set(`${device}.jwt`, token); },
  };
}

/** newSession returns the session of a new visitor. The browser does not store it. */
export function newSession({ jwt = "" } = {}) {
  return { cartToken: "", publicKey: "", jwt };
}

// fetch refuses to send anything else, so that a damaged token would stop every call.
const sendable = /^[\x20-\x7e]+$/;

/** headersOf returns the headers that identify the cart of a call. */
export function headersOf({ publicKey, cartToken, jwt }) {
  return Object.fromEntries(Object.entries({
    "X-Public-Key": publicKey,
    "X-Cart-Token": cartToken,
    Authorization: jwt && `Bearer ${jwt}`,
  }).filter(([, value]) => sendable.test(value)));
}
