// Adds an Idempotency-Key to each change of the cart, so that it counts once, also if the browser or the published
// client sends it again. For a page, which loads it from the client's apiUrl before the first change.

const cart = new URL("cart/", import.meta.url).href;
const send = globalThis.fetch;

/** @type {{ change: string, key: string }[]} Changes that failed. The client may send them again. */
const failed = [];

/** @type {typeof fetch} */
globalThis.fetch = async (resource, options) => {
  const { href } = new URL(resource instanceof Request ? resource.url : resource, document.baseURI);
  if (!href.startsWith(cart)) return send(resource, options);
  const request = new Request(resource, options);
  const { headers, method } = request;
  if (method === "GET" || method === "HEAD" || headers.has("Idempotency-Key")) return send(request);

  // A second click within a second is the same change. It gets a key of its own, or that of the first click if that
  // has failed: then the retry of the first one gets a key of its own.
  const names = ["X-Timestamp", "X-Public-Key", "X-Cart-Token", "Authorization"];
  const change = JSON.stringify([method, href, options?.body, ...names.map((name) => headers.get(name))]);
  const at = failed.findIndex((each) => each.change === change);
  const key = at < 0 ? crypto.getRandomValues(new Uint32Array(4)).join("-") : failed.splice(at, 1)[0].key;
  headers.set("Idempotency-Key", key);

  let done = false;
  try {
    const response = await send(request);
    if (response.ok) {
      const { api } = await response.clone().json(); // fails if the response is cut off
      if (api !== "merchant-commerce") throw new TypeError("Not the cart");
      done = true;
    }
    return response;
  } finally {
    if (!done && headers.get("X-Timestamp") && typeof options?.body === "string") failed.push({ change, key });
    if (failed.length > 99) failed.shift();
  }
};
