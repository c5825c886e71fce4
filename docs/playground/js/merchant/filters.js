// The form above the list: which subscriptions it shows, and how many on a page. It also knows the query of the list.

import { byId, el, icon, redraw } from "../page/dom.js";
import { clearErrors, showErrors } from "../page/forms.js";
import { number, onLanguage, t } from "../page/language.js";
import { statuses } from "./status.js";

// The filters of GET /subscriptions beside the status, and what their inputs are like.
const id = { inputMode: "numeric" };
const inputs = {
  customerEmail: { inputMode: "email", placeholder: "sara@example.com" },
  customerPhone: { inputMode: "tel" },
  customerCountryCode: { inputMode: "numeric", placeholder: "966" },
  externalCustomerId: {},
  ids: { placeholder: "5001,5003" },
  orderId: id,
  productId: id,
  variantId: id,
  cancelAtPeriodEnd: { choices: ["", "true", "false"] },
  createdFrom: { type: "date" },
  createdTo: { type: "date" },
  per_page: { inputMode: "numeric", placeholder: "15" },
};
const names = Object.keys(inputs);

let shown = ""; // the query of the list

/** startFilters calls apply with a query whenever the filters change. */
export function startFilters(apply) {
  const form = byId("subscription-filters");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply(queryOfForm(form));
  });
  byId("status-filter").addEventListener("change", () => apply(queryOfForm(form)));
  byId("filters-toggle").addEventListener("click", () => unfold(!unfolded()));
  byId("active-filters").addEventListener("click", ({ target }) => {
    const remove = target.closest("button");
    if (!remove) return;
    const { name } = remove.dataset;
    focusNear(form.elements[name]); // the button that has the focus is about to go
    apply(name ? edited(shown, (parameters) => parameters.delete(name)) : "");
  });
  onLanguage(() => {
    drawFields(form);
    showFilters(shown);
  });
  drawFields(form);
}

function drawFields(form) {
  const typed = new FormData(form);
  redraw(byId("filter-fields"), () => [
    ...names.map((name) => el("div", {}, el("label", { htmlFor: `filter-${name}` }, t(`filter_${name}`)), inputOf(name, typed.get(name)))),
    el("button", { class: "primary" }, t("applyFilters")),
  ]);
}

function inputOf(name, value) {
  const { choices, ...properties } = inputs[name];
  const common = { id: `filter-${name}`, name, "data-key": name, value: value ?? "" };
  if (!choices) return el("input", { autocomplete: "off", autocapitalize: "none", spellcheck: false, dir: "ltr", ...properties, ...common });
  return el("select", common, choices.map((choice) => el("option", { value: choice, selected: choice === value }, worded(choice))));
}

const worded = (value) => ({ "": t("any"), true: t("yes"), false: t("no") })[value] ?? value;

/** showFilters sets the form to the query of the list. */
export function showFilters(query) {
  shown = query;
  const form = byId("subscription-filters");
  const parameters = new URLSearchParams(query);
  for (const name of names) form.elements[name].value = parameters.get(name) ?? "";
  const states = (parameters.get("status") ?? "").split(",");
  for (const box of boxes()) box.checked = states.includes(box.value);
  clearErrors(form);
  drawActive();
}

/** refuseFilters shows what the service says about the filters, each at its input. */
export function refuseFilters(errors, message) {
  if (Object.keys(errors).some((name) => names.includes(name))) unfold(true);
  showErrors(byId("subscription-filters"), errors, message);
}

/** showCounts shows how many subscriptions the store has in each state. */
export function showCounts(counts) {
  for (const box of boxes()) box.parentElement.querySelector(".count").textContent = box.value in counts ? number(counts[box.value]) : "";
}

/** queryOfForm returns the query of the form. The service would refuse an empty parameter. */
function queryOfForm(form) {
  const parameters = new URLSearchParams(names.map((name) => [name, form.elements[name].value.trim()]).filter(([, value]) => value !== ""));
  const states = boxes().filter((box) => box.checked).map((box) => box.value);
  if (states.length > 0) parameters.set("status", states.join(","));
  return spelled(parameters);
}

const boxes = () => statuses.map((status) => byId("status-filter").querySelector(`[value="${status}"]`));

// On narrow screens, the fields are folded away until they are needed.
const unfolded = () => byId("filters-toggle").getAttribute("aria-expanded") === "true";

function unfold(open) {
  byId("filters-toggle").setAttribute("aria-expanded", String(open));
  byId("filter-fields").classList.toggle("open", open);
}

function focusNear(control) {
  (control?.checkVisibility() ? control : boxes()[0]).focus();
}

// The states are not among these chips: the boxes show them.
function drawActive() {
  const active = filtersIn(shown);
  const chip = ([name, value]) => {
    const label = t(`filter_${name}`);
    return el("li", {},
      el("button", { type: "button", class: "chip", "data-name": name, "aria-label": t("removeFilter", { filter: `${label} ${worded(value)}` }) },
        el("span", { class: "hint" }, label), " ", el("bdi", { dir: "ltr" }, worded(value)), icon("close")));
  };
  byId("active-filters").hidden = active.length === 0;
  byId("active-filters").replaceChildren(...active.filter(([name]) => name !== "status").map(chip),
    el("li", {}, el("button", { type: "button", class: "plain" }, t("resetFilters"))));
}

/** filtersIn returns the [name, value] pairs of a query that select rows. */
export function filtersIn(query) {
  return [...new URLSearchParams(query)].filter(([name]) => name === "status" || names.includes(name) && name !== "per_page");
}

/** atPage returns a query for a page by its number. */
export function atPage(query, page) {
  return edited(query, (parameters) => parameters.set("page", page));
}

/**
 * ofLink returns the query of a page link. The links are absolute; the page uses only their
 * query and stays on its own origin.
 */
export function ofLink(link) {
  return spelled(new URL(link, document.baseURI).searchParams);
}

function edited(query, edit) {
  const parameters = new URLSearchParams(query);
  parameters.delete("page");
  parameters.delete("cursor"); // valid only for the page that it came with
  edit(parameters);
  return spelled(parameters);
}

// Commas are allowed in a query, and "status=active,past_due" is easier to read in the log.
function spelled(parameters) {
  return parameters.size > 0 ? `?${parameters}`.replaceAll("%2C", ",") : "";
}
