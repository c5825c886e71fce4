// The coupons: each with a button to remove it, and a form while the cart has room for another one.

import { el, icon, redraw } from "../page/dom.js";
import { t } from "../page/language.js";
import { coded } from "../page/notices.js";
import { coupons } from "./sample.js";

const most = 5; // coupons of a cart

/** redeemForm starts a device's form and returns the function that draws a cart's coupons. */
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
    const code = form.elements.coupon.value.trim();
    if (!code) return form.elements.coupon.focus();
    const answer = await device.cart.redeem(code);
    if (answer.ok) form.reset();
  }

  return (cart) => {
    const given = device.part("coupon-given");
    const focused = form.contains(document.activeElement);
    form.hidden = cart.coupons.length >= most || cart.items.length === 0;
    redraw(given, () => cart.coupons.map((coupon) => couponOf(coupon, device.cart)), form.hidden ? device.part("basket") : form.elements.coupon);
    given.hidden = cart.coupons.length === 0;
    if (focused && form.hidden) (given.querySelector("li:last-child button") ?? device.part("basket")).focus({ preventScroll: true });
  };
}

function couponOf({ code, issue }, cart) {
  return el("li", { "data-coupon": code },
    el("div", { class: "held" },
      el("span", { class: `tag ${issue ? "warm" : "good"}` }, t("couponGiven", { code })),
      el("button", {
        class: "plain sign", "aria-label": t("couponOff", { code }), "data-key": `${code}-off`, onclick: () => cart.dropCoupon(code),
      }, icon("close"))),
    issue && el("div", { class: "hint" }, coded(issue.code, issue.message)));
}
