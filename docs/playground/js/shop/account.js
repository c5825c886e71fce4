// Login and logout. A login only sets a JWT: the next call sends it together with the
// guest's token, and the service merges the guest's cart.

import { events, forget, load } from "./cart.js";
import { byId } from "../page/dom.js";
import { onLanguage, t } from "../page/language.js";
import { demo } from "../demo.js";
import { customerOf, session } from "./session.js";

export function startAccount() {
  byId("login").addEventListener("click", () => become((demo.customers[0]?.jwt ?? "")));
  byId("logout").addEventListener("click", () => become(""));
  byId("use-token").addEventListener("click", openDialog);
  byId("token-form").addEventListener("submit", ({ submitter, target }) => {
    if (submitter?.value !== "use") return;
    session.publicKey = target.elements.public_key.value.trim();
    become(target.elements.jwt.value.trim().replace(/^Bearer\s+/i, ""));
  });
  events.addEventListener("logout", () => become(""));
  onLanguage(draw);
  draw();
}

/** become switches to the customer of a JWT, or to the guest for "". */
function become(jwt) {
  session.jwt = jwt;
  forget();
  draw();
  load();
}

function openDialog() {
  const form = byId("token-form");
  form.elements.jwt.value = session.jwt;
  form.elements.public_key.value = session.publicKey;
  byId("token-dialog").showModal();
}

function draw() {
  const customer = session.jwt && customerOf(session.jwt);
  byId("who").textContent = !session.jwt ? t("guest") : customer === "1001" ? t("sara") : t("customer", { id: customer });
  byId("login").textContent = t("loginSara");
  byId("login").hidden = Boolean(session.jwt) || !(demo.customers[0]?.jwt ?? "");
  byId("logout").hidden = !session.jwt;
}
