// Uses the types that openapi-typescript generates. What follows @ts-expect-error must not compile.
import type { components, paths } from "./schema";

type Cart = components["schemas"]["Cart"];
type Add = paths["/cart/add"]["post"];
type Edit = paths["/cart/items/{item_id}"]["patch"];
type Validate = paths["/cart/validate"]["get"];
type Answer<Call extends { responses: unknown }, Status extends keyof Call["responses"]> = Call["responses"][Status] extends {
  content: { "application/json": infer Body };
} ? Body : never;
type Body<Call extends { requestBody: { content: { "application/json": unknown } } }> = Call["requestBody"]["content"]["application/json"];

const body: Body<Add> = { product_id: 4, subscription_plan: 41 };
export const edit: Body<Edit> = { quantity: 2, fields: { Region: null } };
export const coupons: Body<paths["/cart/coupon"]["post"]>[] = [{ coupon: "TEN" }, { code: "TEN" }];
export const list: Body<paths["/cart/ops"]["post"]> = {
  mode: "each",
  ops: [{ op: "add", product_id: 1 }, { op: "edit", item: "1", quantity: 2 }, { op: "coupon", coupon: null }, { op: "clear" }],
};

// @ts-expect-error: no such operation
export const replaced: Body<paths["/cart/ops"]["post"]> = { ops: [{ op: "replace", item: "1" }] };
// @ts-expect-error: an unknown member
export const misspelled: Body<Edit> = { quantty: 2 };
// @ts-expect-error: another type
export const text: Body<Edit> = { quantity: "two" };
// @ts-expect-error: an unknown member
export const voucher: Body<paths["/cart/coupon"]["post"]> = { voucher: "TEN" };
// @ts-expect-error: no product
export const nothing: Body<Add> = { qty: 1 };

export function lines(cart: Cart): string[] {
  return cart.items.map((item) => `${item.quantity} × ${item.name}: ${item.pricing.formatted.total_price}`);
}

export async function add(base: string): Promise<string> {
  const response = await fetch(`${base}/cart/add`, { method: "POST", body: JSON.stringify(body) });
  if (response.status === 422) {
    const refused: Answer<Add, 422> = await response.json();
    const later: typeof refused.code = "a_code_of_a_later_release";
    return refused.code === later ? "" : refused.message;
  }
  const answer: Answer<Add, 200> = await response.json();
  // @ts-expect-error: an unknown member
  answer.data.totl;
  return answer.data.item_id ?? "";
}

export function issues({ code, data }: Answer<Validate, 400>, { data: valid }: Answer<Validate, 200>): string[] {
  // @ts-expect-error: an unknown member
  valid.isues;
  return data && "issues" in data ? data.issues.map((issue) => issue.message) : [code, ...valid.errors];
}
