// A shopping trip by the published storefront client, as it is installed. It runs
// twice, since the client looks at where it runs: as in a browser, and as on a
// storefront's server, where it signs its requests.
//
// Environment: BASE_URL of a service with the sample store; LOSSY_URL of the same
// one behind a proxy that loses the first reply to every change; PUBLIC_KEY of the
// store; JWT_BROWSER, JWT_SERVER and JWT_LOSSY of three customers without a cart.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const { BASE_URL, LOSSY_URL, PUBLIC_KEY, JWT_BROWSER, JWT_SERVER, JWT_LOSSY } = process.env;
const TOKEN = /^[A-Za-z0-9_-]{22,128}$/;

// The client finds out where it runs when it is first made, and keeps to it.
const server = createRequire(import.meta.url)('rmz-storefront-sdk').SecureStorefrontSDK;
const onServer = (apiUrl = BASE_URL) => new server({ apiUrl, publicKey: PUBLIC_KEY, secretKey: 'sk_demo' });
onServer();
globalThis.window = { document: {}, navigator: {} };
const browser = (await import('rmz-storefront-sdk')).SecureStorefrontSDK;
const inBrowser = (apiUrl = BASE_URL) => new browser({ apiUrl, publicKey: PUBLIC_KEY });
assert.equal(onServer().getInfo().environment.platform, 'node');
assert.equal(inBrowser().getInfo().environment.platform, 'browser');

// last is the latest exchange as it went over the wire.
let last;
const send = globalThis.fetch;
globalThis.fetch = async (url, request) => {
  const response = await send(url, request);
  last = { sent: request.headers, status: response.status, headers: response.headers, body: await response.clone().json() };
  return response;
};

// whole passes on what the client returned, if the client stripped nothing from it.
function whole(returned) {
  assert.equal(last.body.success, true);
  assert.deepEqual(returned, last.body.data, 'the client strips members of this answer');
  return returned;
}

// refused passes on the error of a call that must fail.
async function refused(call, status, code) {
  const error = await call.then(
    () => assert.fail(`should have been refused with ${code}`),
    (error) => error,
  );
  const told = error.response?.data;
  assert.deepEqual([error.status, told?.code], [status, code], JSON.stringify(error));
  assert.equal(error.response.status, status);
  assert.equal(told.success, false);
  assert.ok(told.message.length > 0);
  assert.equal(error.message, told.message, 'what a storefront shows its shopper');
  return error;
}

const lines = (cart) => cart.items.map((item) => `${item.id}×${item.quantity}`).join(' ');

async function trip(place, open, jwt) {
  const phone = open();

  // A guest, whom the first answer gives a token.
  assert.equal(phone.getCartToken(), undefined);
  let cart = whole(await phone.cart.get());
  assert.deepEqual([cart.items, cart.count, cart.total, cart.version], [[], 0, 0, 0]);
  const token = phone.getCartToken();
  assert.match(token, TOKEN);
  assert.equal(token, last.headers.get('x-cart-token'));
  assert.equal(place === 'server', 'X-Signature' in last.sent);
  console.log(`${place}: an empty cart, and a token for it`);

  // What is sold plainly, with a plan, and with fields.
  cart = whole(await phone.cart.addItem(1, 2));
  assert.deepEqual([lines(cart), cart.subtotal, cart.total, cart.currency], ['1×2', 99, 99, 'SAR']);
  whole(await phone.cart.addItem(4, 1, { subscription_plan: 41 }));
  whole(await phone.cart.addItem(4, 1, { subscription_plan: { id: 42 } }));
  const answers = { 'Account email': 'sara@example.com', Region: 'us' };
  whole(await phone.cart.addItem(5, 1, { fields: answers, notice: 'For my sister' }));
  cart = whole(await phone.cart.addItem(5, 1, { fields: answers }));
  assert.match(lines(cart), /^1×2 4\.p41×1 4\.p42×1 5\.f[A-Za-z0-9_-]+×2$/);
  const [, monthly, , streaming] = cart.items;
  assert.deepEqual([monthly.unit_price, monthly.subscription_plan.duration], [20, 'monthly']);
  assert.deepEqual([streaming.unit_price, streaming.total_price, streaming.notice], [20.25, 40.5, 'For my sister']);
  assert.deepEqual(streaming.custom_fields, [
    { name: 'Account email', value: 'sara@example.com', option: null, price: null },
    { name: 'Region', value: 'United States', option: 'us', price: 5.25 },
  ]);
  assert.equal(phone.getCartToken(), token, 'one cart, one token');
  await Promise.all([phone.cart.addItem(1), phone.cart.addItem(1)]);
  cart = whole(await phone.cart.get());
  assert.equal(cart.items[0].quantity, 4, 'two clicks within a second are two clicks');
  console.log(`${place}: products, plans and fields`);

  // Refusals, as a storefront reads them. None changes the cart.
  whole(await phone.cart.addItem(2, 3));
  const before = whole(await phone.cart.get());
  let error = await refused(phone.cart.addItem(2), 422, 'insufficient_stock');
  assert.match(error.message, /3.*Concert ticket/);
  assert.deepEqual(Object.keys(error.response.data.errors), ['qty']);
  error = await refused(phone.cart.updateItem('2', 4), 422, 'insufficient_stock');
  assert.deepEqual(Object.keys(error.response.data.errors), ['quantity']);
  await refused(phone.cart.addItem(6), 422, 'out_of_stock');
  await refused(phone.cart.addItem(3), 422, 'product_inactive');
  await refused(phone.cart.addItem(4), 422, 'plan_unavailable');
  await refused(phone.cart.addItem(5), 422, 'field_missing');
  await refused(phone.cart.addItem(404), 404, 'product_not_found');
  await refused(phone.cart.updateItem('404', 1), 404, 'item_not_found');
  const after = whole(await phone.cart.get());
  assert.deepEqual({ ...after, expires_at: null }, { ...before, expires_at: null });
  console.log(`${place}: refusals that say why and change nothing`);

  // Lines by their id, and the only line of a product by the product's, as the published cart page names them.
  cart = whole(await phone.cart.updateItem('4.p42', 2));
  assert.equal(cart.items[2].quantity, 2);
  error = await refused(phone.cart.updateItem(4, 3), 422, 'validation_failed');
  assert.deepEqual(Object.keys(error.response.data.errors), ['item_id']);
  await refused(phone.cart.removeItem(4), 422, 'validation_failed');
  cart = whole(await phone.cart.removeItem('4.p41'));
  assert.deepEqual(cart.items.map((item) => item.id).slice(0, 2), ['1', '4.p42']);
  cart = whole(await phone.cart.updateItem(4, 3));
  assert.deepEqual([cart.items[1].id, cart.items[1].quantity], ['4.p42', 3]);
  cart = whole(await phone.cart.removeItem(streaming.id));
  cart = whole(await phone.cart.updateItem('4.p42', 0));
  assert.equal(lines(cart), '1×4 2×3');
  assert.equal(await phone.cart.getCount(), 7);
  assert.equal(last.body.data.lines, 2);
  console.log(`${place}: quantities and removals`);

  // Checkout: validation and the summary.
  const valid = whole(await phone.cart.validate());
  assert.deepEqual([valid.valid, valid.errors, valid.issues], [true, [], []]);
  error = await refused(open().cart.validate(), 400, 'cart_invalid');
  const invalid = error.response.data.data;
  assert.equal(invalid.valid, false);
  assert.equal(invalid.errors.length, 1);
  assert.equal(invalid.issues[0].code, 'cart_empty');
  const summary = whole(await phone.cart.getSummary());
  assert.deepEqual(summary.items, cart.items);
  assert.deepEqual([summary.subtotal, summary.discount, summary.total], [228, 0, 228]);
  assert.deepEqual(summary.shipping, { required: false, cost: 0 });
  assert.deepEqual(summary.tax, { rate: 15, amount: 29.74, included: true, country: 'SA', lines: [{ rate: 15, base: 198.26, amount: 29.74 }] });
  assert.ok(summary.payment_methods.length > 0);
  for (const method of summary.payment_methods) {
    assert.deepEqual(Object.keys(method).sort(), ['enabled', 'icon', 'id', 'name']);
  }
  console.log(`${place}: validation and summary`);

  // A coupon, in any case, and away again.
  cart = whole(await phone.cart.applyCoupon('ten'));
  assert.deepEqual([cart.coupon.code, cart.discount_amount, cart.total], ['TEN', 22.8, 205.2]);
  await refused(phone.cart.applyCoupon('OLD'), 422, 'coupon_invalid');
  cart = whole(await phone.cart.removeCoupon());
  assert.deepEqual([cart.coupon, cart.total], [null, 228]);
  console.log(`${place}: a coupon`);

  // Another device has a cart of this customer already. Then the phone logs in: its
  // cart comes along, cut to what is there to sell.
  const tablet = open();
  tablet.setAuthToken(jwt);
  cart = whole(await tablet.cart.addItem(2, 2));
  assert.equal(cart.cart_token, null);
  assert.equal(tablet.getCartToken(), undefined, "a customer's cart has no token");
  phone.setAuthToken(jwt);
  cart = whole(await phone.cart.get());
  assert.equal(lines(cart), '2×3 1×4');
  const { id: merged, at: _, ...report } = cart.merge;
  assert.deepEqual(report, {
    lines: 2,
    adjusted: [{ item_id: '2', requested: 5, kept: 3, code: 'insufficient_stock' }],
    code: null,
  });
  assert.equal(phone.getCartToken(), token, 'which the client keeps sending');
  cart = whole(await phone.cart.get());
  assert.deepEqual([lines(cart), cart.merge.id], ['2×3 1×4', merged]); // for a minute
  console.log(`${place}: a login takes the guest's cart along, once`);

  // Both devices show one cart, and a third brings its own with its first change.
  whole(await tablet.cart.updateItem('1', 1));
  assert.equal(lines(whole(await phone.cart.get())), '2×3 1×1');
  const laptop = open();
  whole(await laptop.cart.addItem(7, 2));
  laptop.setAuthToken(jwt);
  cart = whole(await laptop.cart.addItem(1));
  assert.deepEqual([lines(cart), cart.merge.lines, cart.merge.adjusted, cart.merge.id === merged], ['2×3 1×2 7×2', 1, [], false]);
  assert.equal(await tablet.cart.getCount(), 7);
  console.log(`${place}: three devices, one cart`);

  // Logged out, the phone is a guest again, with an empty cart under its old token.
  phone.setAuthToken(null);
  cart = whole(await phone.cart.get());
  assert.deepEqual([cart.items, cart.cart_token], [[], token]);
  assert.equal(lines(whole(await phone.cart.addItem(1))), '1×1');
  assert.equal(await tablet.cart.getCount(), 7);
  phone.setAuthToken('expired');
  await refused(phone.cart.get(), 401, 'unauthenticated');
  phone.setAuthToken(null);
  console.log(`${place}: logged out`);

  // Cleared, the client forgets its token and is given another.
  await phone.cart.clear();
  assert.equal(phone.getCartToken(), undefined);
  cart = whole(await phone.cart.get());
  assert.deepEqual(cart.items, []);
  assert.match(phone.getCartToken(), TOKEN);
  assert.notEqual(phone.getCartToken(), token);
  await laptop.cart.clear();
  assert.equal(await tablet.cart.getCount(), 0);
  phone.setCartToken('left by an older shop');
  whole(await phone.cart.addItem(1));
  assert.match(phone.getCartToken(), TOKEN);
  assert.equal(await phone.cart.getCount(), 1);
  console.log(`${place}: cleared, and a stale token healed`);
}

// Every change below is made, its reply lost, and sent again by the client itself
// a second later. Each must count once.
async function lostReplies() {
  const prepared = async (...additions) => {
    const lossy = inBrowser(LOSSY_URL);
    const calm = inBrowser();
    await calm.cart.get();
    for (const addition of additions) await calm.cart.addItem(...addition);
    lossy.setCartToken(calm.getCartToken());
    return lossy;
  };
  const plans = [[4, 1, { subscription_plan: 41 }], [4, 1, { subscription_plan: 42 }]];
  const cases = {
    'a first add, without a token': async () => {
      const cart = await inBrowser(LOSSY_URL).cart.addItem(1, 2);
      assert.deepEqual([lines(cart), cart.version], ['1×2', 1]);
    },
    'an add': async () => {
      const cart = await (await prepared([1, 2])).cart.addItem(1, 3);
      assert.deepEqual([lines(cart), cart.version], ['1×5', 2]);
    },
    'an add of all that is in stock': async () => {
      const cart = await (await prepared()).cart.addItem(2, 3);
      assert.deepEqual([lines(cart), cart.version], ['2×3', 1]);
    },
    'a new quantity': async () => {
      const cart = await (await prepared([1, 2])).cart.updateItem('1', 7);
      assert.deepEqual([lines(cart), cart.version], ['1×7', 2]);
    },
    "a quantity of 0 by the product's id": async () => {
      const cart = await (await prepared([1, 2], plans[0])).cart.updateItem(4, 0);
      assert.deepEqual([lines(cart), cart.version], ['1×2', 3]);
    },
    "a removal by the product's id": async () => {
      const cart = await (await prepared([1, 2], plans[0])).cart.removeItem(4);
      assert.deepEqual([lines(cart), cart.version], ['1×2', 3]);
    },
    'an add that logs in': async () => {
      const client = await prepared([1, 2]);
      client.setAuthToken(JWT_LOSSY);
      const cart = await client.cart.addItem(1, 3);
      assert.equal(lines(cart), '1×5');
    },
    'a clear': async () => {
      const client = await prepared([1, 2]);
      const token = client.getCartToken();
      await client.cart.clear();
      client.setCartToken(token);
      const cart = await client.cart.get();
      assert.deepEqual([lines(cart), cart.version], ['', 2]);
    },
  };
  await Promise.all(Object.entries(cases).map(async ([what, test]) => {
    await test();
    console.log(`lost reply: ${what} counts once`);
  }));
}

await trip('browser', inBrowser, JWT_BROWSER);
await trip('server', onServer, JWT_SERVER);
await lostReplies();
