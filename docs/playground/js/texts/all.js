// The page's own texts, by language and key. Texts of the service are shown as they are.

import { hero } from "./hero.js";
import { log } from "./log.js";
import { merchant } from "./merchant.js";
import { page } from "./page.js";
import { scenarios } from "./scenarios.js";
import { shop } from "./shop.js";

const areas = [page, hero, shop, scenarios, log, merchant];

export const texts = Object.fromEntries(
  ["en", "ar"].map((language) => [language, Object.assign({}, ...areas.map((area) => area[language]))]));
