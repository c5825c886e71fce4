// The merchant's tab: GET /subscriptions with its filters, page by page.

import { call } from "../api/api.js";
import { byId, el } from "../page/dom.js";
import { clearErrors, showErrors } from "../page/forms.js";
import { number, onLanguage, t } from "../page/language.js";
import { passes, sentenceOf, warn } from "../page/notices.js";
import { demo } from "../demo.js";
import { asStore, session } from "./session.js";
import { hideSubscription, showSubscription, statusTag } from "./subscription.js";

const filters = ["customerEmail", "customerPhone", "customerCountryCode", "per_page"];

let shown = null; // { query, page } of the list on the screen
let lastAsked = 0;

export function startSubscriptions() {
  const form = byId("subscription-filters");
  form.elements.token.value = session.apiToken || demo.apiToken;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    list(queryOf(form));
  });
  form.addEventListener("reset", (event) => {
    event.preventDefault(); // the token is not a filter
    for (const name of filters) form.elements[name].value = "";
    if (session.apiToken) list("");
  });
  byId("page-prev").addEventListener("click", () => list(queryOfLink(shown.page.prev_page_url)));
  byId("page-next").addEventListener("click", () => list(queryOfLink(shown.page.next_page_url)));
  onLanguage(() => { if (shown) list(shown.query); });
}

/** openSubscriptions lists immediately if there is a token. */
export function openSubscriptions() {
  if (!shown && byId("subscription-filters").elements.token.value) list("");
}

function queryOf(form) {
  const query = new URLSearchParams();
  for (const name of filters) {
    const value = form.elements[name].value.trim();
    if (value) query.set(name, value); // an empty filter would be refused
  }
  return query.size > 0 ? `?${query}` : "";
}

// The links are absolute. The page uses only their query and stays on its own origin.
const queryOfLink = (link) => new URL(link, document.baseURI).search;

async function list(query) {
  const form = byId("subscription-filters");
  clearErrors(form);
  session.apiToken = form.elements.token.value.trim();
  if (!session.apiToken) return showErrors(form, { token: [t("tokenNeeded")] });
  const asked = ++lastAsked;
  const answer = await call("GET", `/subscriptions${query}`, { headers: asStore(), from: "merchant" });
  if (asked !== lastAsked) return; // a newer request replaces this one
  if (answer.ok) return draw(query, answer.data);
  if (answer.status === 401) return showErrors(form, { token: [answer.message] });
  if (answer.status === 404) return say(t("notServed"));
  if (passes(answer)) return warn(sentenceOf(answer), () => list(query));
  showErrors(form, answer.errors, answer.message);
}

function draw(query, page) {
  shown = { query, page };
  hideSubscription();
  if (page.data.length === 0) say(t("noneFound"));
  else byId("subscription-list").replaceChildren(table(page.data));
  byId("subscription-pages").hidden = false;
  byId("page-prev").disabled = !page.prev_page_url;
  byId("page-next").disabled = !page.next_page_url;
  byId("page-position").textContent = page.from === null
    ? t("pastEnd", { page: number(page.current_page) })
    : t("position", { page: number(page.current_page), from: number(page.from), to: number(page.to) });
}

function say(text) {
  byId("subscription-list").replaceChildren(el("p", { class: "empty" }, text));
  byId("subscription-pages").hidden = true;
}

function table(rows) {
  const columns = ["status", "product", "price", "period", "daysLeft", "renews"];
  return el("table", { class: "subscriptions" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "#"), columns.map((c) => el("th", { scope: "col" }, t(c))))),
    el("tbody", {}, rows.map(row)));
}

function row(s) {
  const cell = (label, ...content) => el("td", { "data-label": t(label) }, ...content);
  return el("tr", {},
    el("th", { scope: "row" }, el("button", {
      class: "link", "aria-label": t("show", { id: s.id }), onclick: () => showSubscription(s.id),
    }, String(s.id))),
    cell("status", statusTag(s.status)),
    cell("product", el("bdi", {}, s.product.name), " ", el("span", { class: "hint" }, s.variant.duration_text)),
    cell("price", el("bdi", {}, s.price.formatted)),
    cell("period", el("bdi", { class: "dates" }, `${day(s.current_period_start)} – ${day(s.current_period_end)}`)),
    cell("daysLeft", number(s.days_remaining)),
    cell("renews", t(s.auto_renew ? "yes" : "no")));
}

const day = (date) => date.slice(0, 10);
