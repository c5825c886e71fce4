// The client of docs/storefront.js in Node, against the service at BASE_URL. Faults are those of the fetch that it gets.

import assert from "node:assert/strict";
import { after, test } from "node:test";

const url = process.env.BASE_URL, publicKey = "pk_demo", key = "Idempotency-Key";
const demo = await (await fetch(`${url}/playground/demo.json`)).json();

// What React Native does not have.
for (const name of ["CustomEvent", "TextDecoderStream"]) delete globalThis[name];
for (const name of ["any", "timeout"]) delete AbortSignal[name];
const { createCart } = await import("./storefront.mjs");

const ending = [];
after(() => ending.forEach((end) => end()));

function memory(items = {}) {
  return { items, getItem: async (name) => items[name] ?? null, setItem: async (name, value) => void (items[name] = value), removeItem: async (name) => void delete items[name] };
}

/** Returns a client, its store, and what it has sent. A fault gets the number of the request, and its response. */
function open({ store = memory(), fault = (n, respond) => respond() } = {}) {
  const sent = [];
  const shop = createCart({ url, publicKey, store, language: "en", fetch: async (address, options) => {
    const respond = () => fetch(address, options);
    if (address.endsWith("/events")) return respond();
    const { method, body, headers } = options;
    sent.push({ method, path: address.slice(url.length), body, headers, at: Date.now() });
    return fault(sent.length, respond, options);
  } });
  return { shop, store, sent };
}

const lost = async (respond) => { await (await respond()).text(); throw new TypeError("fetch failed"); };
const says = (status, code, headers = {}) => new Response(JSON.stringify({ api: "merchant-commerce", success: false, code, message: "said", data: null, timestamp: Math.floor(Date.now() / 1000) }), { status, headers });

/** Resolves to the first state for which a condition is true. */
const until = ({ shop }, condition) => new Promise((done) => {
  const check = (state) => { if (condition(state)) { end(); done(state); } };
  const end = shop.subscribe((state) => setTimeout(check, 0, state));
  check(shop.state);
});

const add = { product_id: 2, qty: 1 };

for (const [name, fault] of Object.entries({
  "a lost answer": (n, respond) => (n === 1 ? lost(respond) : respond()),
  "another server's answer": (n, respond) => (n === 1 ? respond().then(() => new Response('{"data": {}}')) : respond()),
  "a 500": (n, respond) => (n === 1 ? says(500, "internal") : respond()),
  "a 504": (n, respond) => (n === 1 ? respond().then(() => says(504, "outcome_unknown")) : respond()),
})) {
  test(`${name} is followed by the same request, and counts once`, async () => {
    const client = open({ fault });
    const cart = await client.shop.add(add);
    const [first, second, ...more] = client.sent;
    assert.deepEqual({ ...second, at: 0 }, { ...first, at: 0 });
    assert.ok(first.headers[key].length >= 22 && second.at - first.at >= 950 && !more.length);
    assert.equal(cart.count, 1);
    assert.deepEqual([client.shop.state.pending, client.shop.state.error, client.store.items["pk_demo.outbox"]], [0, null, "[]"]);
  });
}

for (const [status, code] of [[503, "unavailable"], [429, "rate_limited"]]) {
  test(`a ${status} is followed by the same request after Retry-After, not before`, async () => {
    const client = open({ fault: (n, respond) => (n === 1 ? says(status, code, { "Retry-After": "2" }) : respond()) });
    const result = client.shop.add(add);
    const waiting = await until(client, ({ error }) => error);
    assert.deepEqual([waiting.pending, waiting.error.status, waiting.error.code], [1, status, code]);
    client.shop.retry();
    await result;
    assert.equal(client.sent[0].headers[key], client.sent[1].headers[key]);
    assert.ok(client.sent[1].at - client.sent[0].at >= 1950);
  });
}

test("a 429 to a coupon is a refusal", async () => {
  const client = open({ fault: (n, respond) => (n === 1 ? says(429, "rate_limited", { "Retry-After": "60" }) : respond()) });
  await assert.rejects(client.shop.applyCoupon("TEN"), { status: 429, message: "said" });
  assert.equal((await client.shop.add(add)).count, 1);
});

test("after a 500 each time, it shows the cart", async () => {
  const client = open({ fault: (n, respond, { method }) => (method === "GET" ? respond() : says(500, "internal")) });
  const result = client.shop.add(add);
  const end = client.shop.subscribe(() => setTimeout(client.shop.retry, 1));
  await assert.rejects(result, { status: 500 });
  await until(client, ({ cart }) => cart);
  end();
  assert.equal(client.sent.length, 6);
});

test("a refused change does not hold up the next", async () => {
  const { shop } = open();
  const refused = assert.rejects(shop.add({ product_id: 2, qty: 9 }), { status: 422, code: "insufficient_stock", message: /^Only 3 of/ });
  const cart = await shop.add(add);
  await refused;
  assert.deepEqual([cart.item_id, cart.count, shop.state.error], ["2", 1, null]);
});

test("the next client goes on with what the store has, with the same keys", async () => {
  const offline = open({ fault: (n, respond) => (n === 1 ? lost(respond) : Promise.reject(new TypeError("fetch failed"))) });
  offline.shop.add({ product_id: 2, qty: 3 });
  offline.shop.edit("2", { quantity: 2 });
  await until(offline, ({ pending, error }) => pending === 2 && error?.status === 0);
  const store = memory({ ...offline.store.items }); // as after a reload
  const online = open({ store });
  const { cart } = await until(online, ({ pending, cart }) => cart && pending === 0);
  assert.equal(cart.count, 2);
  const [read, first, second, ...more] = online.sent;
  assert.deepEqual([read.method, first.body, second.body, more], ["GET", '{"product_id":2,"qty":3}', '{"quantity":2}', []]);
  assert.equal(first.headers[key], offline.sent[0].headers[key]);
  assert.equal(store.items["pk_demo.outbox"], "[]");
  await offline.shop.logout();
});

test("two clients with one store keep each other's changes", async () => {
  const fault = () => Promise.reject(new TypeError("fetch failed")), store = memory();
  const tabs = [open({ store, fault }), open({ store, fault })];
  for (const tab of tabs) {
    tab.shop.add(add);
    await until(tab, ({ error }) => error);
  }
  assert.equal(JSON.parse(store.items["pk_demo.outbox"]).length, 2);
  const tokens = new Set(tabs.map(({ sent }) => sent[0].headers["X-Cart-Token"]));
  assert.equal(tokens.size, 1);
  await Promise.all(tabs.map(({ shop }) => shop.logout()));
});

test("a change that was tried 24 hours ago is not sent again", async () => {
  const change = { method: "POST", path: "/add", body: JSON.stringify(add), key: "a-key-of-the-day-before", tried: Date.now() - 86_400_000 };
  const client = open({ store: memory({ "pk_demo.outbox": JSON.stringify([change]) }) });
  const { error } = await until(client, ({ error }) => error);
  assert.deepEqual([error.code, error.change.body], ["outdated", change.body]);
  const { cart } = await until(client, ({ cart, pending }) => cart && !pending);
  assert.deepEqual([cart.count, client.sent.filter(({ method }) => method !== "GET")], [0, []]);
});

test("an edit behind another that gives the line a new id edits that line", async () => {
  const { shop } = open();
  const { item_id: id } = await shop.add({ product_id: 5, fields: { "Account email": "sara@exmaple.com" } });
  const moved = shop.edit(id, { fields: { "Account email": "sara@example.com" } });
  const cart = await shop.edit(id, { quantity: 2 });
  assert.notEqual((await moved).item_id, id);
  assert.deepEqual([cart.item_id, cart.count], [(await moved).item_id, 2]);
});

test("a change that depends on the cart is refused with a 412 that shows the new one", async () => {
  const phone = open(), tablet = open({ store: phone.store });
  await phone.shop.add(add);
  await tablet.shop.add({ product_id: 1 });
  await assert.rejects(phone.shop.clear({ seen: true }), ({ status, data }) => status === 412 && data.count === 2);
  assert.equal(phone.shop.state.cart.count, 2);
  assert.equal((await phone.shop.clear({ seen: true })).count, 0);
});

test("a late read does not show an older cart", async () => {
  let deliver;
  const late = new Promise((done) => { deliver = done; });
  const { shop } = open({ fault: (n, respond) => (n === 1 ? respond().then((response) => late.then(() => response)) : respond()) });
  const read = shop.get();
  await shop.add(add);
  deliver();
  assert.equal((await read).count, 1);
});

test("a login reports its merge, and undo gives the guest's cart back", async () => {
  const { shop, store } = open();
  await shop.add(add);
  assert.equal((await shop.login(demo.customer_jwt)).count, 1);
  assert.equal(shop.state.merge.lines, 1);
  const before = store.items["pk_demo.cart"];
  const { count, undone } = await shop.undo();
  await shop.get();
  assert.deepEqual([count, shop.state.merge, store.items["pk_demo.cart"]], [0, null, undone.guest_cart]);
  assert.notEqual(undone.guest_cart, before);
  await shop.logout();
  assert.equal(shop.state.cart, null);
  assert.deepEqual(store.items, {});
});

test("a customer's change waits for a JWT that is valid, also after a restart", async () => {
  const expired = open();
  expired.shop.login(demo.expired_jwt).catch(() => {});
  const added = expired.shop.add({ product_id: 1 });
  const { error } = await until(expired, ({ error, pending }) => pending && error?.status === 401 && error.change.key);
  assert.equal(error.message, "Your session has expired. Please log in again.");
  const restarted = open({ store: memory({ ...expired.store.items }) });
  await until(restarted, ({ error }) => error?.code === "unauthenticated");
  assert.deepEqual(restarted.sent.filter(({ method }) => method !== "GET"), []);
  restarted.shop.login(demo.customer_jwt);
  await until(restarted, ({ cart, pending }) => cart?.count === 1 && !pending);
  await expired.shop.login(demo.customer_jwt);
  assert.equal((await added).count, 1);
  await expired.shop.clear();
});

test("a client that follows shows the changes of others, and its own without a read", async () => {
  const phone = open(), tablet = open({ store: phone.store });
  ending.push(tablet.shop.follow());
  await phone.shop.add(add);
  await tablet.shop.add({ product_id: 1 });
  await until(tablet, ({ cart }) => cart.count === 2);
  const reads = () => tablet.sent.filter(({ method }) => method === "GET").length;
  await new Promise((done) => setTimeout(done, 500));
  const before = reads();
  await tablet.shop.add({ product_id: 1 });
  await phone.shop.add(add);
  await until(tablet, ({ cart }) => cart.count === 4);
  assert.equal(reads(), before + 1);
});

test("every call of the cart works", async () => {
  const { shop, store } = open();
  await shop.apply({ mode: "all", ops: [{ op: "add", product_id: 2, qty: 2 }, { op: "add", product_id: 1 }] });
  const { replaced } = await shop.applyCoupon("ten");
  assert.deepEqual([replaced, shop.state.cart.coupon.code], [[], "TEN"]);
  assert.deepEqual([(await shop.count()).count, (await shop.validate()).valid, (await shop.summary()).payment_required], [3, true, true]);
  assert.deepEqual((await shop.removeCoupon("TEN")).coupons, []);
  assert.equal((await shop.remove("1")).count, 2);
  await shop.fixAll();

  const { code } = await shop.share(), other = open();
  assert.equal((await shop.shared(code)).count, 2);
  await other.shop.apply({ mode: "each", ops: [{ op: "add_shared", code }] });
  assert.equal(other.shop.state.cart.count, 2);
  assert.deepEqual(await shop.deleteShare(code), { deleted: true });
  await assert.rejects(shop.shared(code), { status: 404, code: "not_found" });

  const before = store.items["pk_demo.cart"], offer = await shop.handOver(), taker = open();
  assert.equal((await taker.shop.preview(offer.code)).count, 2);
  assert.equal((await taker.shop.redeem(offer.code)).count, 2);
  assert.notEqual(taker.store.items["pk_demo.cart"], before);
  assert.equal((await taker.shop.add(add)).count, 3);
  assert.equal((await shop.get()).count, 0);
  assert.equal((await shop.validate()).valid, false);
});
