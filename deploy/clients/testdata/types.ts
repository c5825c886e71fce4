// Uses the types that openapi-typescript generates.
import type { components, paths } from "./schema";

type Cart = components["schemas"]["Cart"];
type Add = paths["/cart/add"]["post"];
type Refused = Add["responses"][422]["content"]["application/json"];

const body: Add["requestBody"]["content"]["application/json"] = { product_id: 4, subscription_plan: 41 };

export function lines(cart: Cart): string[] {
  return cart.items.map((item) => `${item.quantity} × ${item.name}: ${item.pricing.formatted.total_price}`);
}

export async function add(base: string): Promise<string> {
  const response = await fetch(`${base}/cart/add`, { method: "POST", body: JSON.stringify(body) });
  if (response.status === 422) {
    const refused: Refused = await response.json();
    return refused.message;
  }
  const answer: Add["responses"][200]["content"]["application/json"] = await response.json();
  return answer.data.item_id ?? "";
}
