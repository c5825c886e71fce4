// Uses the client that @hey-api/openapi-ts generates.
import { addToCart, getSubscription } from "./client";

export async function add(token: string): Promise<number> {
  const { data, error } = await addToCart({
    body: { product_id: 1, qty: 2 },
    headers: { "X-Public-Key": "pk_demo", "X-Cart-Token": token },
  });
  if (error) throw new Error(error.message);
  return data.data.total;
}

export async function status(id: number, token: string): Promise<string | undefined> {
  const { data } = await getSubscription({ path: { id }, auth: token });
  return data?.data.status;
}
