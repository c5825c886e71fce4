// A small cart, as a team may write it in an afternoon: Fastify and one Redis hash per cart, whose
// fields are lines as JSON. It trusts its callers, knows ten products, and has no coupons, tax,
// merge or protection of retries.
//
// `make peers` measures it; see docs/performance.md. It reads ADDR and REDIS_URL.
import Fastify from 'fastify';
import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';

const ttl = 30 * 24 * 60 * 60;
const currency = 'SAR';
const products = new Map(Array.from({ length: 10 }, (_, i) => [i + 1, {
  name: `Game credit ${i + 1}`, slug: `game-credit-${i + 1}`, type: 'digital', stock: 1_000_000, price: 1001 + i,
  image: { url: `https://cdn.example.com/products/game-credit-${i + 1}.webp`, alt: `Game credit ${i + 1}` },
}]));

const redis = new Redis(process.env.REDIS_URL);
const app = Fastify({ logger: false });

const money = cents => ({ amount: cents / 100, formatted: `${currency} ${(cents / 100).toFixed(2)}` });

function cartOf(token, stored) {
  const items = Object.values(stored).map(text => {
    const line = JSON.parse(text);
    const { price, stock, ...product } = products.get(line.product_id);
    return { ...line, ...product, in_stock: line.quantity <= stock, unit_price: money(price), total: money(price * line.quantity) };
  });
  items.sort((a, b) => a.added_at - b.added_at);
  const count = items.reduce((sum, line) => sum + line.quantity, 0);
  const total = items.reduce((sum, line) => sum + products.get(line.product_id).price * line.quantity, 0);
  return { cart_token: token, items, count, currency, total: money(total) };
}

app.get('/cart', async request => {
  const token = request.headers['x-cart-token'] ?? randomUUID();
  return { data: cartOf(token, await redis.hgetall(`cart:${token}`)) };
});

const body = {
  type: 'object',
  required: ['product_id'],
  properties: { product_id: { type: 'integer' }, qty: { type: 'integer', minimum: 1, default: 1 } },
};

app.post('/cart/add', { schema: { body } }, async (request, reply) => {
  const { product_id, qty } = request.body;
  const product = products.get(product_id);
  if (!product) return reply.code(404).send({ message: 'no such product' });

  const token = request.headers['x-cart-token'] ?? randomUUID();
  const key = `cart:${token}`;
  const stored = await redis.hget(key, product_id);
  const line = stored ? JSON.parse(stored) : { product_id, quantity: 0, added_at: Date.now() };
  line.quantity += qty;
  if (line.quantity > product.stock) return reply.code(422).send({ message: 'not enough stock' });

  const replies = await redis.multi().hset(key, product_id, JSON.stringify(line)).expire(key, ttl).hgetall(key).exec();
  return { data: cartOf(token, replies[2][1]) };
});

const [host, port] = process.env.ADDR.split(':');
await app.listen({ host, port: Number(port) });
