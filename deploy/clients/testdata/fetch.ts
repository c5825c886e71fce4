// Uses the client that @hey-api/openapi-ts generates. What follows @ts-expect-error must not compile.
import { addToCart, applyCoupon, getSubscription, updateCartItem, type CalendarDate, type ErrorAnswer } from "./client";

export async function add(token: string): Promise<number> {
  const { data, error } = await addToCart({
    body: { product_id: 1, qty: 2 },
    headers: { "X-Public-Key": "pk_demo", "X-Cart-Token": token },
  });
  if (error) throw new Error(error.code === "a_code_of_a_later_release" ? error.code : error.message);
  // @ts-expect-error: an unknown member
  data.data.totl;
  return data.data.total;
}

export async function edit(path: { item_id: string }): Promise<ErrorAnswer | undefined> {
  // @ts-expect-error: an unknown member
  await updateCartItem({ path, body: { quantty: 2 } });
  // @ts-expect-error: another type
  await updateCartItem({ path, body: { quantity: "two" } });
  // @ts-expect-error: an unknown member
  await applyCoupon({ body: { voucher: "TEN" } });
  await applyCoupon({ body: { code: "TEN" } });
  const { error } = await updateCartItem({ path, body: { quantity: 2, notice: null } });
  return error;
}

export async function status(id: number, token: string): Promise<[string | undefined, CalendarDate | undefined]> {
  const { data } = await getSubscription({ path: { id }, auth: token });
  // @ts-expect-error: an unknown member
  data?.data.pausd_at;
  return [data?.data.paused_at ?? data?.data.status, data?.data.ends_at];
}
