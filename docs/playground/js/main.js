// The playground: a small storefront on the public API.

import { startAccount } from "./shop/account.js";
import { call } from "./api/api.js";
import { startArt } from "./page/art.js";
import { load, validate } from "./shop/cart.js";
import { startCartPanel } from "./shop/cartpanel.js";
import { byId } from "./page/dom.js";
import { startLanguage } from "./page/language.js";
import { startLog } from "./log/log.js";
import { startProducts } from "./shop/products.js";
import { meetDemo } from "./demo.js";
import { openSubscriptions, startSubscriptions } from "./merchant/subscriptions.js";
import { startTabs } from "./page/tabs.js";
import { asShopper } from "./shop/session.js";

startArt();
startLanguage(byId("language"));
startLog({ repeated: load, tries: make });
startProducts();
startCartPanel();
await meetDemo();
startAccount();
startSubscriptions();
startTabs((area) => { if (area === "subscriptions") openSubscriptions(); });
await load();

function make(path) {
  if (path === "/cart") return load();
  if (path === "/cart/validate") return validate();
  return call("GET", path, { headers: asShopper() });
}
