// The playground: scenarios, two small storefronts and a merchant's dashboard on the public API, and a
// log of all their requests.

import { meetDemo } from "./demo.js";
import { startLog } from "./log/log.js";
import { showSubscriptions, startSubscriptions } from "./merchant/subscriptions.js";
import { byId } from "./page/dom.js";
import { startLanguage } from "./page/language.js";
import { startTabs } from "./page/tabs.js";
import { startScenarios } from "./scenarios/scenarios.js";
import { startTokenDialog } from "./shop/account.js";
import { startDevices } from "./shop/devices.js";

const devices = startDevices();
startTokenDialog();
startLog({ repeated: (from) => devices[from]?.cart.load() });
startTries();
startLanguage(byId("language"));
await meetDemo();
for (const { account } of devices.all) account.draw();
startSubscriptions();
const showArea = startTabs((area) => showSubscriptions(area === "subscriptions"));
const startLinked = startScenarios(devices, showArea);
await devices.openAll();
followLink();
addEventListener("hashchange", followLink);

/** followLink plays the scenario of a link, #play=<name>, or offers its cart, #handover=<code> or #share=<code>. */
function followLink() {
  const [, kind, value] = /^#(play|handover|share)=(.+)/.exec(location.hash) ?? [];
  if (!kind) return;
  if (kind === "play") return startLinked(value);
  showArea("store"); // also clears the code from the address, so that nobody copies it
  const { cart } = devices.active;
  if (kind === "share") cart.previewShared(value);
  else cart.preview(value);
}

/** startTries lets the log's buttons make their calls, as the shopper of the device in front. */
function startTries() {
  const calls = { "/cart": (cart) => cart.load(), "/cart/validate": (cart) => cart.checkOut() };
  for (const button of document.querySelectorAll("[data-try]")) {
    const path = button.dataset.try;
    button.addEventListener("click", () => (calls[path] ?? ((cart) => cart.read(path)))(devices.active.cart));
  }
}
