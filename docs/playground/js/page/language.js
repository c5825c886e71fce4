// The page's language: its texts, its direction and the Accept-Language of calls.

import { lasting } from "./storage.js";
import { merchant } from "../texts/merchant.js";
import { shopper } from "../texts/shopper.js";

const texts = { ...shopper, ...merchant };
const languages = ["en", "ar"]; // in the order of each text

const changes = new EventTarget();

export function language() {
  return document.documentElement.lang === "ar" ? "ar" : "en";
}

/** onLanguage calls run whenever the language changes. */
export function onLanguage(run) {
  changes.addEventListener("change", run);
}

function setLanguage(code) {
  lasting.set("language", code);
  const root = document.documentElement;
  root.lang = code;
  root.dir = code === "ar" ? "rtl" : "ltr";
  translate(document);
  changes.dispatchEvent(new Event("change"));
}

/**
 * startLanguage uses the language of the last visit, otherwise the browser's. The button
 * switches to the other language.
 */
export function startLanguage(button) {
  const other = () => (language() === "ar" ? "en" : "ar");
  button.addEventListener("click", () => setLanguage(other()));
  onLanguage(() => {
    button.lang = other();
    button.textContent = textIn(other(), "itself");
  });
  const last = lasting.get("language");
  setLanguage(languages.includes(last) ? last : (navigator.language.startsWith("ar") ? "ar" : "en"));
}

function textIn(code, key) {
  if (!(key in texts)) throw new Error(`no text ${key}`);
  return texts[key][languages.indexOf(code)];
}

/** t returns a text of the page. {name} in it is replaced with a value. */
export function t(key, values = {}) {
  return textIn(language(), key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

/** said returns a text that is written in each language, in the page's language. */
export function said(text) {
  return text[language()];
}

const plurals = { en: ["zero", "one", "other"], ar: ["zero", "one", "two", "few", "many", "other"] };

/** counted returns the plural form of a text for n. A text has its last forms in this order. */
export function counted(key, n) {
  const forms = textIn(language(), key);
  const order = plurals[language()];
  const form = n === 0 ? "zero" : new Intl.PluralRules(language()).select(n);
  return (forms.at(order.indexOf(form) - order.length) ?? forms.at(-1)).replaceAll("{n}", number(n));
}

function translate(root) {
  for (const e of root.querySelectorAll("[data-t]")) e.textContent = t(e.dataset.t);
  for (const e of root.querySelectorAll("[data-t-label]")) e.setAttribute("aria-label", t(e.dataset.tLabel));
  for (const e of root.querySelectorAll("[data-t-placeholder]")) e.placeholder = t(e.dataset.tPlaceholder);
  document.title = t("title");
}

/** tag is for Intl: Arabic with Western digits, as in the service's texts. */
export const tag = () => (language() === "ar" ? "ar-u-nu-latn" : "en");

/** money formats an amount in major units, as the service does. */
export function money(amount, currency) {
  return new Intl.NumberFormat(tag(), { style: "currency", currency }).format(amount);
}

/** bare formats an amount without its currency. */
export function bare(amount, currency, signDisplay = "auto") {
  const { maximumFractionDigits: digits } = new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions();
  return new Intl.NumberFormat(tag(), { minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay }).format(amount);
}

export function number(n) {
  return new Intl.NumberFormat(tag()).format(n);
}

export function dateTime(iso) {
  return new Intl.DateTimeFormat(tag(), { dateStyle: "medium", timeStyle: "short", calendar: "gregory" }).format(new Date(iso));
}
