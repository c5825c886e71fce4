// The coupon: a form if the cart has none, otherwise the coupon and a button to remove it.

import { el, icon } from "../page/dom.js";
import { clearErrors } from "../page/forms.js";
import { t } from "../page/language.js";
import { coded } from "./outcome.js";
import { coupons } from "./sample.js";

/** redeemForm starts a device's form and returns the function that draws a cart's coupon. */
export function redeemForm(device) {
  const form = device.part("coupon-form");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    redeem();
  });
  device.part("sample-coupons").replaceChildren(...coupons.map((code) => el("button", {
    type: "button", class: "plain code", lang: "en", onclick: () => { form.elements.coupon.value = code; redeem(); },
  }, code)));

  async function redeem() {
    clearErrors(form);
    const answer = await device.cart.redeem(form.elements.coupon.value.trim());
    if (answer.ok) form.reset();
  }

  return (cart) => {
    const given = device.part("coupon-given");
    const focused = [form, given].some((place) => place.contains(document.activeElement));
    form.hidden = Boolean(cart.coupon) || cart.items.length === 0;
    given.hidden = !cart.coupon;
    given.replaceChildren(...(cart.coupon ? couponOf(cart.coupon, device.cart) : []));
    if (focused && !given.hidden) given.querySelector("button").focus({ preventScroll: true });
    else if (focused) (form.hidden ? device.part("basket") : form.elements.coupon).focus({ preventScroll: true });
  };
}

function couponOf({ code, issue }, cart) {
  return [
    el("span", { class: `tag ${issue ? "warm" : "good"}` }, t("couponGiven", { code })),
    el("button", { class: "plain sign", "aria-label": t("couponOff"), onclick: () => cart.dropCoupon() }, icon("close")),
    issue && el("div", { class: "hint" }, coded(issue.code, issue.message)),
  ].filter(Boolean);
}
