// The playground: two small storefronts and a merchant's dashboard on the public API, and a
// log of all their requests.

import { meetDemo } from "./demo.js";
import { startHero } from "./hero/hero.js";
import { startLog } from "./log/log.js";
import { showSubscriptions, startSubscriptions } from "./merchant/subscriptions.js";
import { startArt } from "./page/art.js";
import { byId } from "./page/dom.js";
import { startLanguage } from "./page/language.js";
import { startTabs } from "./page/tabs.js";
import { startScenarios } from "./scenarios/scenarios.js";
import { startTokenDialog } from "./shop/account.js";
import { drawAccounts, startDevices } from "./shop/devices.js";

startArt();
const devices = startDevices();
startTokenDialog();
startLog({ repeated: (from) => devices[from]?.cart.load(), tries: (path) => tryOn(devices.active.cart, path) });
startLanguage(byId("language"));
startHero();
await meetDemo();
drawAccounts(devices);
startSubscriptions();
const showArea = startTabs((area) => showSubscriptions(area === "subscriptions"));
const scenarios = startScenarios(devices, showArea);
await devices.loadAll();
scenarios.startLinked();
openLink();
addEventListener("hashchange", () => {
  scenarios.startLinked();
  openLink();
});

/** openLink offers the cart of a link, #handover=<code> or #share=<code>. */
function openLink() {
  const [, kind, code] = /^#(handover|share)=(.+)/.exec(location.hash) ?? [];
  if (!code) return;
  showArea("store"); // also clears the code from the address, so that nobody copies it
  const { cart } = devices.active;
  if (kind === "share") cart.previewShared(code);
  else cart.preview(code);
}

/** tryOn makes one of the log's example calls as the shopper of a device. */
function tryOn(cart, path) {
  if (path === "/cart") return cart.load();
  return path === "/cart/validate" ? cart.checkOut() : cart.read(path);
}
