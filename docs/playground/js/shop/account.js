// Who shops on a device: a guest, a customer of the demo, or the owner of a token. A
// login only sets a JWT: the next call sends it together with the guest's token, and the
// service merges the guest's cart.

import { demo } from "../demo.js";
import { byId, el } from "../page/dom.js";
import { onLanguage, said, t } from "../page/language.js";

export class Account {
  constructor(device) {
    this.device = device;
    this.select = device.part("account");
    this.select.addEventListener("change", () => this.#choose());
    for (const event of ["forget", "logout"]) device.cart.addEventListener(event, () => this.draw());
    onLanguage(() => this.draw());
  }

  draw() {
    const { jwt } = this.device.cart.session;
    const actor = demo.actors.find((c) => c.jwt === jwt);
    const known = actor || demo.customers.some((c) => c.jwt === jwt);
    const options = [
      ["", t("guest")],
      ...demo.customers.map((c) => [c.jwt, said(c.name)]),
      ...(actor ? [[jwt, said(actor.name)]] : []),
      ...(jwt && !known ? [[jwt, t("customer")]] : []),
      ["token", t("useToken")],
    ];
    this.select.replaceChildren(...options.map(([value, text]) => el("option", { value, selected: value === jwt }, text)));
  }

  #choose() {
    if (this.select.value !== "token") return this.device.become(this.select.value);
    this.draw();
    openDialog(this.device);
  }
}

/** startTokenDialog prepares the dialog that asks for a token. */
export function startTokenDialog() {
  byId("token-form").addEventListener("submit", ({ submitter, target }) => {
    if (submitter?.value !== "use") return;
    asking.cart.session.publicKey = target.elements.public_key.value.trim();
    asking.become(target.elements.jwt.value.trim().replace(/^Bearer\s+/i, ""));
  });
}

let asking; // the device that the dialog is open for

function openDialog(device) {
  asking = device;
  const form = byId("token-form");
  form.elements.jwt.value = device.cart.session.jwt;
  form.elements.public_key.value = device.cart.session.publicKey;
  byId("token-dialog").showModal();
}
