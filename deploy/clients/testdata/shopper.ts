// Uses the client of docs/storefront.js. What follows @ts-expect-error must not compile.
import { createCart, type Cart, type CartError, type State } from "./storefront";

export const shop = createCart({ url: "https://api.example.com", publicKey: "pk_demo", store: localStorage });
// @ts-expect-error: no store
createCart({ url: "https://api.example.com", publicKey: "pk_demo" });

export async function trip(code: string): Promise<(number | string | null)[]> {
  const { item_id: id, total } = await shop.add({ product_id: 4, subscription_plan: 41 }, { seen: true });
  await shop.apply({ mode: "each", ops: [{ op: "edit", item: id ?? "", quantity: 2 }, { op: "coupon", coupon: null }] });
  // @ts-expect-error: no product
  await shop.add({ qty: 1 });
  // @ts-expect-error: another type
  await shop.edit("1", { quantity: "two" });
  // @ts-expect-error: no such operation
  await shop.apply({ mode: "all", ops: [{ op: "replace", item: "1" }] });
  // @ts-expect-error: an unknown member
  (await shop.get()).totl;
  const { undone } = await shop.undo();
  const { url } = await shop.handOver();
  return [total, undone.guest_cart, url, (await shop.redeem(code, { keep_agent: true })).currency, (await shop.summary()).tax.amount];
}

export function text({ cart, error, merge }: State): string {
  const problem: CartError | null = error, shown: Cart | null = cart;
  return problem ? `${problem.status} ${problem.message}` : `${shown?.items[0]?.pricing.formatted.total_price} ${merge?.lines}`;
}
