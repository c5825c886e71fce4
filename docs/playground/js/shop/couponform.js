// The coupon: a form if the cart has none, otherwise the coupon and a button to remove it.

import { dropCoupon, redeem, refusedByRule } from "./cart.js";
import { byId, el, icon } from "../page/dom.js";
import { clearErrors, showErrors } from "../page/forms.js";
import { t } from "../page/language.js";
import { coupons } from "./sample.js";

export function startCoupon() {
  const form = byId("coupon-form");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply(form);
  });
  byId("sample-coupons").replaceChildren(...coupons.map((code) => el("button", {
    type: "button", class: "plain code", onclick: () => { form.elements.coupon.value = code; apply(form); },
  }, code)));
}

async function apply(form) {
  clearErrors(form);
  const answer = await redeem(form.elements.coupon.value);
  if (answer.ok) form.reset();
  else if (refusedByRule(answer)) showErrors(form, answer.errors, answer.message);
}

export function drawCoupon(cart) {
  const given = byId("coupon-given");
  byId("coupon-form").hidden = Boolean(cart.coupon);
  given.hidden = !cart.coupon;
  if (!cart.coupon) return given.replaceChildren();
  const { code, issue } = cart.coupon;
  given.replaceChildren(
    el("span", { class: `tag ${issue ? "warm" : "good"}` }, t("couponGiven", { code })),
    el("button", { class: "plain sign", "aria-label": t("couponOff"), onclick: dropCoupon }, icon("close")),
    ...(issue ? [el("span", { class: "hint" }, issue.message)] : []));
}
