// A client of the cart for browsers, React Native and Node: createCart. Without dependencies, and without anything of a page
// before the last part, which repairs fetch for the published client.

/** @import { components } from "./openapi" */
/** @typedef {components["schemas"]} Schemas */
/** @typedef {Schemas["Cart"]} Cart */
/** @typedef {Schemas["EditedCart"]} EditedCart A cart with the item_id of the line that was added or edited */
/** @typedef {Error & { status: number, code?: string, errors?: any, data?: any, change: Request }} CartError
 *   Why a request has failed. Without an answer, status is 0, and message is empty */
/** @typedef {object} State
 * @property {Cart | null} cart The last one that the service has sent
 * @property {number} pending Changes without an answer
 * @property {CartError | null} error Why the last request was refused or has to wait; null after one that succeeds
 * @property {Schemas["MergeReport"] | null} merge What the login did, until it is undone */
/** @typedef {object} Store Such as localStorage, or AsyncStorage of React Native
 * @property {(name: string) => string | null | Promise<string | null>} getItem
 * @property {(name: string, value: string) => unknown} setItem
 * @property {(name: string) => unknown} removeItem */
/** @typedef {object} Settings
 * @property {string} url Of the service
 * @property {string} publicKey Of the store
 * @property {Store} store Keeps the cart token, and the changes without an answer
 * @property {string} [language] Of texts; otherwise the browser's
 * @property {typeof globalThis.fetch} [fetch] follow() needs one that streams */
/** @typedef {{ seen?: boolean }} Options seen: refuse the change (412) if the cart has changed since the state's */

/** @typedef {object} Request
 * @property {string} method
 * @property {string} path Below /cart
 * @property {string} [body]
 * @property {string} [key] Its Idempotency-Key
 * @property {string} [match] An ETag for If-Match
 * @property {string} [tag] An ETag for If-None-Match
 * @property {boolean} [customer] Made with a JWT, so it waits for one
 * @property {number} [tried] When it was first tried, in ms of the service's clock */
/** @typedef {Request & { key: string, done?: (data: any) => void, fail?: (error: unknown) => void }} Change
 *   Without done, it is from the store, perhaps of another tab */
/** @typedef {(exists: unknown) => unknown} Ear Is called after each answer. exists: there is a cart to follow */

const send = globalThis.fetch;
const forever = 2 ** 31 - 1; // ms
const silence = 45_000; // ms. A stream has something every 15 seconds
const memory = 86_340_000; // ms. The service remembers a key for a minute longer

/** @param {string} url */
const cartOf = (url) => `${url.replace(/\/*$/, "")}/cart`;

const nothing = () => {};
const random = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

/** @param {string | null | undefined} etag @returns {string | undefined} The id of its version; undefined: nobody has used the cart */
const versionOf = (etag) => /"(?!0\.0\.0-)([^"-]+)-/.exec(etag ?? "")?.[1];

/** Reads the service's answer. Fails if it is another server's. @param {Response} response @returns {Promise<any>} */
async function read(response) {
  const answer = await response.json();
  if (answer.api !== "merchant-commerce") throw TypeError("Not the cart");
  return answer;
}

/** @param {any} answer @param {Request} change @returns {CartError} */
const errorOf = (answer, change) => Object.assign(Error(answer.message), answer, { change });

/** @param {AbortSignal} signal @param {number} ms */
const ending = (signal, ms) => new Promise((done) => {
  const timer = setTimeout(done, signal.aborted ? 0 : ms);
  signal.addEventListener("abort", () => done(clearTimeout(timer)));
});

/** Calls end if a result is late. @template T @param {number} ms @param {Promise<T>} result @param {() => void} end */
const within = (ms, result, end) => {
  const timer = setTimeout(end, ms);
  return result.finally(() => clearTimeout(timer));
};

/** Keeps the cart token and the changes without an answer. Reads and writes one after the other. @param {Store} store @param {string} name */
function keep(store, name) {
  const tokenName = `${name}.cart`, outboxName = `${name}.outbox`;
  const mine = new Set(); // keys of this client's changes
  /** @type {Promise<any>} */
  let last = Promise.resolve();
  /** @template T @param {() => Promise<T>} run @returns {Promise<T>} */
  const alone = (run) => {
    const result = last.then(run);
    last = result.catch(nothing);
    return result;
  };
  /** @returns {Promise<Change[]>} */
  const list = async () => JSON.parse(await store.getItem(outboxName) ?? "[]");
  return {
    list,
    /** @param {Change[]} queue */
    save: (queue) => alone(async () => {
      for (const { key } of queue) mine.add(key);
      const others = (await list()).filter(({ key }) => !mine.has(key));
      await store.setItem(outboxName, JSON.stringify([...others, ...queue]));
    }),
    token: () => alone(async () => {
      if (!await store.getItem(tokenName)) await store.setItem(tokenName, random());
      return /** @type {string} */ (await store.getItem(tokenName)); // perhaps another tab's
    }),
    /** @param {string} token */
    setToken: (token) => alone(async () => store.setItem(tokenName, token)),
    forget: () => alone(async () => {
      await store.removeItem(tokenName);
      await store.removeItem(outboxName);
    }),
  };
}

/**
 * Creates the client of one shopper's cart. A change is stored, and sent in its turn with a key of its own until the service
 * answers. So it also counts once after lost answers and restarts: the next client goes on with what the store has. Its promise
 * resolves when it is applied, and rejects with a CartError when it is refused.
 *
 * @param {Settings} settings
 */
export function createCart({ url, publicKey, store, language, fetch = (...request) => send(...request) }) {
  const base = cartOf(url), kept = keep(store, publicKey);
  /** @type {Change[]} */
  const queue = []; // changes without an answer, the oldest first
  /** @type {Set<(state: State) => void>} */
  const listeners = new Set();
  /** @type {Set<Ear>} */
  const ears = new Set();
  /** @type {State} */
  let state = { cart: null, pending: 0, error: null, merge: null };
  let jwt = "", etag = ""; // of state.cart
  /** @type {string | undefined} */
  let version; // the id of the cart's version in the newest answer
  /** @type {string | undefined} */
  let undone; // the id of a merge
  let turns = 0, shown = 0; // of reads and answered changes
  let skew = 0; // ms that the service's clock is ahead, as far as known
  let running = false;
  let retry = nothing; // ends a wait, unless the service has asked for it
  /** @type {Promise<any>} */
  let flight = Promise.resolve(); // the newest try
  const now = () => Date.now() + skew;
  onPage(() => retry());

  async function credentials() {
    /** @type {Record<string, string>} */
    const headers = { "X-Public-Key": publicKey, "X-Cart-Token": await kept.token() };
    if (language) headers["Accept-Language"] = language;
    if (jwt) headers.Authorization = `Bearer ${jwt}`;
    return headers;
  }

  /** @param {Request} request */
  async function attempt({ method, path, body, key, match, tag, customer }) {
    if (customer && !jwt) return { status: 401, code: "unauthenticated" };
    const headers = await credentials();
    if (body) headers["Content-Type"] = "application/json";
    if (key) headers["Idempotency-Key"] = key;
    if (match) headers["If-Match"] = match;
    if (tag) headers["If-None-Match"] = tag;
    const stop = new AbortController();
    const answer = async () => {
      const response = await fetch(base + path, { method, body, headers, cache: "no-store", signal: stop.signal });
      const { status } = response, etag = response.headers.get("ETag"), newest = versionOf(etag);
      const ok = status === 304, answer = ok ? {} : await read(response), { data, timestamp } = answer;
      if (timestamp) skew = timestamp * 1000 - Date.now();
      if (key || !path) {
        const token = data?.undone?.guest_cart ?? data?.cart_token;
        if (token && token !== headers["X-Cart-Token"]) await kept.setToken(token);
        if (etag) version = newest;
      }
      for (const ear of ears) ear(key || newest);
      return { ...answer, ok: ok || response.ok, status, etag, wait: Number(response.headers.get("Retry-After")) };
    };
    return within(10_000, answer(), () => stop.abort()).catch(() => ({ status: 0 })); // the service answers within 5 seconds
  }

  /**
   * Tries until there is an answer, also a refusal, or three times. With wanted, it tries as long as that is true, and may
   * resolve to null.
   *
   * @param {Request} request
   * @param {() => Promise<unknown>} [wanted]
   * @returns {Promise<any>}
   */
  async function answerTo(request, wanted) {
    const guesses = /^\/(coupon|handover|share\/)|"op":"(coupon|add_shared)"/.test(request.path + request.body);
    for (let failures = 0; !wanted || await wanted(); failures++) {
      if (now() > /** @type {number} */ (request.tried) + memory) return { status: 0, code: "outdated" };
      const answer = await (flight = attempt(request));
      const { status, wait } = answer;
      const busy = status === 503 || (status === 429 && !guesses);
      const login = status === 401 && wanted;
      const lost = !status || status === 504 || (status === 500 && failures < 4);
      if ((!wanted && failures > 1) || !(busy || login || lost)) return answer;
      update({ error: errorOf(answer, request) });
      const round = new AbortController();
      retry = () => busy || round.abort();
      await ending(round.signal, busy && wait ? 1000 * wait : login ? forever : Math.min(1000 * 2 ** failures, 60_000));
    }
    return null;
  }

  /** @param {Partial<State>} members */
  function update(members) {
    state = { ...state, ...members, pending: queue.length };
    for (const listener of listeners) listener(state);
  }

  /** Shows what an answer says. @param {any} answer @param {Request} request */
  function take(answer, request) {
    const { ok, data } = answer, cart = data?.items && data, merge = data?.merge ?? state.merge;
    if (data?.undone) undone = merge?.id;
    if (cart) ({ etag } = answer);
    const error = ok ? null : errorOf(answer, request);
    update({ error, merge: merge?.id === undone ? null : merge, ...(cart && { cart }) });
    return error;
  }

  /** Reads the cart. @returns {Promise<Cart>} */
  async function get() {
    for (;;) {
      const turn = ++turns, request = { method: "GET", path: "", tag: etag };
      const answer = await answerTo(request);
      if (turn < shown) continue; // older than what is shown
      shown = turn;
      const error = take(answer, request);
      if (error) throw error;
      return /** @type {Cart} */ (state.cart);
    }
  }

  /**
   * Sends a request that is not stored.
   *
   * @param {string} path
   * @param {string} [method]
   * @param {object} [body]
   * @param {string} [key]
   * @returns {Promise<any>}
   */
  async function ask(path, method = "GET", body, key) {
    const request = { method, path, body: body && JSON.stringify(body), key };
    const answer = await answerTo(request);
    if (answer.ok || answer.code === "cart_invalid") return answer.data;
    const error = errorOf(answer, request);
    update({ error });
    throw error;
  }

  /**
   * Stores a change, and sends it in its turn.
   *
   * @param {string} method
   * @param {string} path
   * @param {Options} [options]
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  function change(method, path, options, body) {
    /** @type {Change} */
    const made = {
      method, path, body: body && JSON.stringify(body), key: random(), match: options?.seen ? etag : "", customer: Boolean(jwt),
    };
    const result = new Promise((done, fail) => Object.assign(made, { done, fail }));
    result.catch(nothing); // the state has the error
    ready.then(() => {
      queue.push(made);
      kept.save(queue).catch(nothing); // settle() tries again
      update({});
      run();
    });
    return result;
  }

  async function run() {
    for (let next; !running && (next = queue[0]); ) {
      running = true;
      await settle(next).catch(next.fail ?? nothing); // the store has failed
      if (queue[0] === next) queue.shift();
      update({});
      running = false;
    }
  }

  /** Sends a change until it is answered. @param {Change} change */
  async function settle(change) {
    const { key, done, path } = change;
    if (!done && !skew) await get().catch(nothing); // tells how old it is
    change.tried ??= now();
    await kept.save(queue);
    const answer = await answerTo(change, async () =>
      queue[0] === change && (done || (await kept.list()).some((each) => each.key === key)));
    if (!answer || queue[0] !== change) return; // logged out, or answered to another tab
    queue.shift();
    const id = answer.data?.item_id;
    for (const later of queue) if (id && later.path === path && !later.tried) later.path = item(id);
    shown = ++turns;
    await kept.save(queue);
    const error = take(answer, change);
    if (!answer.status || answer.status === 500) get().catch(nothing);
    if (error) change.fail?.(error);
    else done?.(answer.data);
  }

  const ready = kept.list().then((changes) => {
    queue.push(...changes);
    run();
  });

  return {
    get state() { return state; },

    /** Calls a function with each new state. Returns one that ends it. @param {(state: State) => void} listener */
    subscribe(listener) {
      listeners.add(listener);
      return () => { listeners.delete(listener); };
    },

    /** Reads the cart now, and when another device has changed it. Returns a function that ends it. */
    follow() {
      const stop = new AbortController(), { signal } = stop, idle = () => isHidden() || !version;
      (async () => {
        await get().catch(nothing); // the state has the error
        for await (const { id } of listen({ url: `${base}/events`, headers: credentials, signal, fetch, ears, idle })) {
          await flight; // may have the same version
          if (id !== version) await get().catch(nothing);
        }
      })();
      return () => stop.abort();
    },

    /** Uses a customer's JWT, also for the changes that wait for one. @param {string} token */
    login(token) {
      jwt = token;
      retry();
      return get();
    },

    /** Forgets the cart, the customer and all changes without an answer. */
    async logout() {
      jwt = etag = "";
      shown = ++turns;
      for (const { fail } of queue.splice(0)) fail?.(Error("logged out"));
      await kept.forget();
      retry();
      update({ cart: null, error: null, merge: null });
    },

    /** Tries again now, such as when the network is back. In a page, this happens by itself. */
    retry: () => retry(),

    get,
    /** @returns {Promise<Schemas["Count"]>} */
    count: () => ask("/count"),
    /** @returns {Promise<Schemas["Validation"]>} */
    validate: () => ask("/validate"),
    /** @returns {Promise<Schemas["Summary"]>} */
    summary: () => ask("/summary"),

    /** @param {Schemas["AddRequest"]} product @param {Options} [options] @returns {Promise<EditedCart>} */
    add: (product, options) => change("POST", "/add", options, product),
    /** @param {string} id @param {Schemas["UpdateRequest"]} edit @param {Options} [options] @returns {Promise<EditedCart>} */
    edit: (id, edit, options) => change("PATCH", item(id), options, edit),
    /** @param {string} id @param {Options} [options] @returns {Promise<Cart>} */
    remove: (id, options) => change("DELETE", item(id), options),
    /** @param {Options} [options] @returns {Promise<Cart>} */
    clear: (options) => change("DELETE", "/clear", options),
    /** @param {string} coupon @param {Options} [options] @returns {Promise<Schemas["CouponCart"]>} */
    applyCoupon: (coupon, options) => change("POST", "/coupon", options, { coupon }),
    /** Removes one code, or all. @param {string} [code] @param {Options} [options] @returns {Promise<Cart>} */
    removeCoupon: (code, options) => change("DELETE", `/coupon${code ? `?code=${encodeURIComponent(code)}` : ""}`, options),
    /** @param {Schemas["OpsRequest"]} list @param {Options} [options] @returns {Promise<Schemas["OpsCart"]>} */
    apply: (list, options) => change("POST", "/ops", options, list),
    /** Applies the fix of each issue and warning. */
    async fixAll() {
      const { items = [], warnings = [] } = state.cart ?? {}, lists = [];
      const fixes = [...items.map(({ issue }) => issue), ...warnings].flatMap((problem) => problem?.fix ?? []);
      while (fixes.length) lists.push(change("POST", "/ops", {}, { mode: "each", ops: fixes.splice(0, 50) }));
      await Promise.all(lists);
    },
    /** Undoes the merge of a login. @returns {Promise<Schemas["UndoneCart"]>} */
    undo: (id = state.merge?.id) => change("POST", "/merge/undo", {}, { id }),

    /** @returns {Promise<Schemas["Handover"]>} */
    handOver: () => ask("/handover", "POST"),
    /** Shows the cart that a code offers. @param {string} code @returns {Promise<Cart & { changed?: boolean }>} */
    preview: (code) => ask("/handover/redeem", "POST", { code, preview: true }),
    /** Moves it. @param {string} code @param {{ keep_agent?: boolean }} [more] @returns {Promise<Cart>} */
    redeem: (code, more) => change("POST", "/handover/redeem", {}, { code, ...more }),
    /** @returns {Promise<Schemas["Share"]>} */
    share: () => ask("/share", "POST", undefined, random()),
    /** Shows a shared copy. @param {string} code @returns {Promise<Cart>} */
    shared: (code) => ask(`/share/${code}`),
    /** @param {string} code @returns {Promise<{ deleted: boolean }>} */
    deleteShare: (code) => ask(`/share/${code}`, "DELETE"),
  };
}

/** @param {string} id */
const item = (id) => `/items/${encodeURIComponent(id)}`;

/**
 * Yields the events of a cart with a new id. It connects again by itself. While it is idle, or there is no cart, it waits.
 *
 * @param {{ url: string, headers: () => any, signal?: AbortSignal, fetch: typeof globalThis.fetch, ears: Set<Ear>,
 *   idle: () => unknown }} options idle: it should not connect now
 * @returns {AsyncGenerator<{ id: string, version: number }>}
 */
async function* listen({ url, headers, signal, fetch, ears, idle }) {
  /** @type {string | undefined} */
  let last;
  for (let failures = 0; !signal?.aborted; ) {
    const round = new AbortController(), end = () => round.abort();
    onPage(end, round.signal);
    signal?.addEventListener("abort", end);
    const credentials = await headers(), waits = idle();
    let pause = waits ? forever : Math.min(1000 * 2 ** failures++, 30_000) * (1 - Math.random() / 2);
    /** @type {unknown} */
    let exists; // the cart, as an answer has told meanwhile
    const ear = async (/** @type {unknown} */ told) => {
      exists ||= told;
      if (JSON.stringify(await headers()) !== JSON.stringify(credentials) || (exists && pause === forever)) end();
    };
    ears.add(ear);
    try {
      const response = await (waits ? null : within(silence, fetch(url, {
        headers: { ...credentials, ...(last && { "Last-Event-ID": last }) }, cache: "no-store", signal: round.signal,
      }), end).catch(() => null));
      if (response?.headers.get("Content-Type")?.startsWith("text/event-stream")) {
        for await (const { retry, id, data } of fieldsOf(response.body, end)) {
          failures = 0;
          pause = Number(retry ?? pause);
          if (!data || id === last) continue;
          last = id;
          yield { id, ...JSON.parse(data) };
        }
      } else if (response && [401, 404].includes(response.status)) {
        pause = exists ? 0 : forever;
      } else if (response) {
        pause = Math.max(pause, 1000 * Number(response.headers.get("Retry-After")) || 0); // a gateway's may be a date
      }
      await ending(round.signal, pause);
    } finally {
      end(); // also if the caller stops listening
      ears.delete(ear);
      signal?.removeEventListener("abort", end);
    }
  }
}

/**
 * Yields the newest value of each field of what arrives. Calls end after a silence.
 *
 * @param {any} body
 * @param {() => void} end
 * @returns {AsyncGenerator<Record<string, string>>}
 */
async function* fieldsOf(body, end) {
  const reader = body.getReader(), decoder = new TextDecoder();
  for (let text = ""; ; ) {
    const { value } = await within(silence, reader.read(), end).catch(() => ({}));
    if (!value) return; // the end, or no connection
    const blocks = (text + decoder.decode(value, { stream: true })).split("\n\n");
    text = /** @type {string} */ (blocks.pop());
    yield Object.fromEntries(blocks.join("\n").split("\n").map((line) => line.split(/: (.*)/)));
  }
}

// What follows is for pages, and does nothing elsewhere.

const page = globalThis.document;
const isHidden = () => page?.hidden;

/** Calls run when the page is hidden or shown, or the network is back. @param {() => void} run @param {AbortSignal} [signal] */
function onPage(run, signal) {
  page?.addEventListener("visibilitychange", run, { signal });
  if (page) addEventListener("online", run, { signal });
}

let cart = ""; // the URL below which fetch is repaired

/** @type {[change: string, key: string][]} Those that failed. The published client may send them again. */
const failed = [];

// For events():
/** @type {Set<Ear>} */
const ears = new Set();
/** @type {string | undefined} */
let known; // the id of the cart's newest version in a response with its lines
/** @type {Promise<any>} */
let pending = Promise.resolve(); // ends with the requests that have begun

/**
 * Replaces fetch, so that each change of the service's cart gets an Idempotency-Key, and counts once if the browser or the
 * published client sends it again. The script does this by itself when a page loads it from the service.
 *
 * @param {string} url of the service
 */
export function repairFetch(url) {
  cart = `${cartOf(url)}/`;
  globalThis.fetch = async (resource, options) => {
    const { origin, pathname } = new URL(resource instanceof Request ? resource.url : resource, page.baseURI);
    if (!`${origin}${pathname}/`.startsWith(cart)) return send(resource, options); // a read of the whole cart has no "/"
    const request = new Request(resource, options);
    const { headers, method } = request;
    const isRead = /GET|HEAD/.test(method);
    const sent = isRead || headers.has("Idempotency-Key") ? send(request) : sendWithKey(request, options?.body);
    pending = Promise.allSettled([pending, sent]).then(nothing); // without the responses, which would stay in memory
    const response = await sent;
    const etag = response.headers.get("ETag"), version = versionOf(etag);
    if (etag && !pathname.endsWith("/summary")) known = version;
    if (response.ok) for (const ear of ears) ear(!isRead || version); // another device may have begun the cart
    return response;
  };
}

/** @param {globalThis.Request} request @param {any} body */
async function sendWithKey(request, body) {
  // A second click within a second is the same change. It gets a key of its own, or that of the first click if that
  // has failed: then the retry of the first one gets a key of its own.
  const { headers, method, url } = request;
  const names = ["X-Timestamp", "X-Public-Key", "X-Cart-Token", "Authorization"];
  const change = JSON.stringify([method, url, body, ...names.map((name) => headers.get(name))]);
  const at = failed.findIndex(([each]) => each === change);
  const key = at < 0 ? random() : failed.splice(at, 1)[0][1];
  headers.set("Idempotency-Key", key);

  let done = false;
  try {
    const response = await send(request);
    if (response.ok) done = await read(response.clone()); // fails if the response is cut off
    return response;
  } finally {
    if (!done && headers.get("X-Timestamp") && typeof body === "string") failed.push([change, key]);
    if (failed.length > 99) failed.shift();
  }
}

/**
 * Yields { id, version } of the cart when another device or page has changed it, for a page with the published client, and may
 * skip all but the newest. version is 0 when the cart is gone, such as after a merge.
 *
 * @param {{ headers: () => Record<string, string>, signal?: AbortSignal, fetch?: typeof globalThis.fetch }} options
 *   headers: the X-Public-Key, X-Cart-Token and Authorization that the page sends now. signal: ends it. fetch: of a shopper
 *   whose other requests do not go through this script
 */
export async function* events({ headers, signal, fetch }) {
  for await (const event of listen({ url: `${cart}events`, headers, signal, fetch: fetch ?? send, ears, idle: isHidden })) {
    await pending; // its response may have the same version
    if (!signal?.aborted && (fetch || event.id !== known)) yield event;
  }
}

if (page) repairFetch(new URL(".", import.meta.url).href); // not in the npm package: React Native cannot read import.meta
