// The playground: a small storefront on the public API.

import { startAccount } from "./account.js";
import { startArt } from "./art.js";
import { load } from "./cart.js";
import { startCartPanel } from "./cartpanel.js";
import { byId } from "./dom.js";
import { startLanguage } from "./language.js";
import { startLog } from "./log.js";
import { startProducts } from "./products.js";
import { meetDemo } from "./session.js";
import { openSubscriptions, startSubscriptions } from "./subscriptions.js";
import { startTabs } from "./tabs.js";
import { startTries } from "./tries.js";

startArt();
startLanguage(byId("language"));
startLog(load);
startProducts();
startCartPanel();
startTries();
await meetDemo();
startAccount();
startSubscriptions();
startTabs((area) => { if (area === "subscriptions") openSubscriptions(); });
await load();
