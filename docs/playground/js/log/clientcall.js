// A request of this page as a call of the published storefront client.

import { fetchOf, literal } from "./codecalls.js";

const version = "2.1.2";

const quoted = (text) => JSON.stringify(text);

// What the client does instead of sending a header that this page sends.
const unsent = {
  "Idempotency-Key": "it retries a lost response with the same X-Timestamp",
  "If-Match": "the change applies even if the cart has changed",
  "If-None-Match": "the response is always the whole cart",
  "Accept-Language": "the browser sends its own",
};

/** clientOf writes a request as a module for a browser. Where the client has no such call, it writes fetch. */
export function clientOf(request) {
  const call = callOf(request);
  if (!call) return `// rmz-storefront-sdk has no call for ${nameOf(request)}. With fetch:\n${fetchOf(request)}`;
  const { headers, url, path } = request;
  const token = headers["X-Cart-Token"];
  const jwt = headers.Authorization?.replace(/^Bearer /, "");
  return [
    `// npm install rmz-storefront-sdk@${version}`,
    `// In a browser. A server also needs a secretKey.`,
    `import { createStorefrontSDK } from "rmz-storefront-sdk";`,
    ``,
    `const storefront = createStorefrontSDK({`,
    `  apiUrl: ${quoted(url.slice(0, url.length - path.length))},`,
    `  publicKey: ${quoted(headers["X-Public-Key"] ?? "pk_demo")},`,
    `});`,
    ...(token ? [`storefront.setCartToken(${quoted(token)});`] : []),
    ...(jwt ? [`storefront.setAuthToken(${quoted(jwt)});`] : []),
    call === "clear()" ? `await storefront.cart.${call};` : `console.log(await storefront.cart.${call});`,
    ...noteOf(headers),
  ].join("\n");
}

// A query of a read is not part of what there is a call for.
const nameOf = ({ method, path }) => `${method} ${method === "GET" ? path.split("?")[0] : path}`;

function noteOf(headers) {
  const missing = Object.keys(unsent).filter((name) => name in headers);
  if (missing.length === 0) return [];
  return [``, `// The client does not send:`, ...missing.map((name) => `//   ${name}: ${unsent[name]}`)];
}

/** callOf returns the client's method with its arguments, or null. */
function callOf({ method, path, body }) {
  const sent = body === undefined ? {} : JSON.parse(body);
  const whole = `${method} ${path}`;
  if (whole === "POST /cart/add") return addition(sent);
  if (whole === "POST /cart/coupon") return `applyCoupon(${quoted(sent.coupon ?? sent.code)})`;
  if (plain[whole]) return plain[whole];
  const line = /^\/cart\/items\/([^/?]+)$/.exec(path)?.[1];
  if (line && method === "DELETE") return `removeItem(${quoted(line)})`;
  if (line && method === "PATCH") return update(line, sent);
  return null;
}

const plain = {
  "GET /cart": "get()",
  "GET /cart/count": "getCount()",
  "GET /cart/validate": "validate()",
  "GET /cart/summary": "getSummary()",
  "DELETE /cart/clear": "clear()",
  "DELETE /cart/coupon": "removeCoupon()",
};

function addition({ product_id: product, qty, quantity, ...options }) {
  const given = Object.keys(options).length > 0 ? `, ${literal(options)}` : "";
  return `addItem(${literal(product)}, ${literal(qty ?? quantity ?? 1)}${given})`;
}

// The client can change only quantities.
function update(line, { qty, quantity, ...others }) {
  return Object.keys(others).length > 0 ? null : `updateItem(${quoted(line)}, ${literal(quantity ?? qty)})`;
}
