// Adds an Idempotency-Key to each change of the cart, so that it counts once, also if the browser or the published
// client sends it again. Its events() tells of changes on other devices. For a page, which loads it from the client's
// apiUrl before the first change.

const cart = new URL("cart/", import.meta.url).href;
const send = globalThis.fetch;

/** @type {{ change: string, key: string }[]} Changes that failed. The client may send them again. */
const failed = [];

// For events():
const answers = new EventTarget(); // has an event after each request for the cart that succeeds
let known; // the id of the cart's newest version in a response with its lines
let pending = Promise.resolve(); // ends with the requests that have begun

/** @type {typeof fetch} */
globalThis.fetch = async (resource, options) => {
  const { origin, pathname } = new URL(resource instanceof Request ? resource.url : resource, document.baseURI);
  if (!`${origin}${pathname}/`.startsWith(cart)) return send(resource, options); // a read of the whole cart has no "/"
  const request = new Request(resource, options);
  const { headers, method } = request;
  const isRead = method === "GET" || method === "HEAD";
  const sent = isRead || headers.has("Idempotency-Key") ? send(request) : sendWithKey(request, options?.body);
  pending = Promise.allSettled([pending, sent]).then(() => {}); // without the responses, which would stay in memory
  const response = await sent;
  const id = /[^"-]+(?=-)/.exec(response.headers.get("ETag"))?.[0];
  if (id && !pathname.endsWith("/summary")) known = id;
  const detail = { exists: !isRead || Boolean(id && id !== "0.0.0") }; // another device may have begun the cart
  if (response.ok) answers.dispatchEvent(new CustomEvent("answer", { detail }));
  return response;
};

async function sendWithKey(request, body) {
  // A second click within a second is the same change. It gets a key of its own, or that of the first click if that
  // has failed: then the retry of the first one gets a key of its own.
  const { headers, method, url } = request;
  const names = ["X-Timestamp", "X-Public-Key", "X-Cart-Token", "Authorization"];
  const change = JSON.stringify([method, url, body, ...names.map((name) => headers.get(name))]);
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
    if (!done && headers.get("X-Timestamp") && typeof body === "string") failed.push({ change, key });
    if (failed.length > 99) failed.shift();
  }
}

/**
 * Yields { id, version } of the cart when another device or page has changed it, and may skip all but the newest. version
 * is 0 when the cart is gone, such as after a merge. While the page is hidden, or has no cart, it only waits.
 *
 * @param {{ headers: () => Record<string, string>, signal?: AbortSignal, fetch?: typeof globalThis.fetch }} options
 *   headers: the X-Public-Key, X-Cart-Token and Authorization that the page sends now. signal: ends it. fetch: of a shopper
 *   whose other requests do not go through this script
 */
export async function* events({ headers, signal, fetch }) {
  let last; // id
  for (let failures = 0; !signal?.aborted; ) {
    const round = new AbortController();
    const end = () => round.abort();
    document.addEventListener("visibilitychange", end, { signal: round.signal });
    addEventListener("online", end, { signal: round.signal });
    signal?.addEventListener("abort", end, { signal: round.signal });
    const credentials = headers();
    let pause = document.hidden ? forever : Math.min(1000 * 2 ** failures++, 30_000) * (1 - Math.random() / 2);
    let exists = false; // the cart, as the page has heard meanwhile
    answers.addEventListener("answer", ({ detail }) => {
      exists ||= detail.exists;
      if (JSON.stringify(headers()) !== JSON.stringify(credentials) || (exists && pause === forever)) end();
    }, { signal: round.signal });
    try {
      const response = await (document.hidden ? null : unlessSilent((fetch ?? send)(`${cart}events`, {
        headers: { ...credentials, ...(last && { "Last-Event-ID": last }) }, cache: "no-store", signal: round.signal,
      }), end).catch(() => null));
      if (response?.headers.get("Content-Type")?.startsWith("text/event-stream")) {
        for await (const { retry, id, data } of fieldsOf(response.body, end)) {
          failures = 0;
          pause = Number(retry ?? pause);
          if (!data || id === last) continue;
          last = id;
          await pending; // its response may have the same version
          if (!signal?.aborted && (fetch || id !== known)) yield { id, ...JSON.parse(data) };
        }
      } else if ([401, 404].includes(response?.status)) {
        pause = exists ? 0 : forever;
      } else if (response) {
        pause = Math.max(pause, 1000 * response.headers.get("Retry-After") || 0); // a gateway's may be a date
      }
      await ending(round.signal, pause);
    } finally {
      end(); // also if the page stops listening
    }
  }
}

const forever = 2 ** 31 - 1; // ms

const ending = (signal, ms) => new Promise((done) => {
  if (signal.aborted) return done();
  setTimeout(done, ms);
  signal.addEventListener("abort", done);
});

/** Calls end if a sign of life does not come within 45 seconds. */
const unlessSilent = (sign, end) => {
  const silence = setTimeout(end, 45_000); // the service writes something every 15
  return sign.finally(() => clearTimeout(silence));
};

/** Yields the newest value of each field of what arrives. Calls end after a silence. */
async function* fieldsOf(body, end) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ; ) {
    const { value } = await unlessSilent(reader.read(), end).catch(() => ({}));
    if (!value) return; // the end, or no connection
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    yield Object.fromEntries(blocks.join("\n").split("\n").map((line) => line.split(/: (.*)/)));
  }
}
