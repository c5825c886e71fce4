// The form above the list: which subscriptions it shows, and how many on a page. It also knows the queries of the list.

import { byId } from "../page/dom.js";
import { clearErrors, showErrors } from "../page/forms.js";
import { number } from "../page/language.js";

const form = () => byId("subscription-filters");
const fields = () => byId("filter-fields");
const boxes = () => byId("status-filter").querySelectorAll("input");

/** startFilters calls apply with a query whenever the filters change. */
export function startFilters(apply) {
  form().addEventListener("submit", (event) => {
    event.preventDefault();
    apply(queryOfForm());
  });
  form().addEventListener("reset", () => apply(""));
  byId("status-filter").addEventListener("change", () => apply(queryOfForm()));
}

/** queryOfForm returns the query of the form. The service would refuse an empty parameter. */
function queryOfForm() {
  const given = new FormData(form());
  const states = given.getAll("status");
  given.delete("status");
  const parameters = new URLSearchParams([...given].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value));
  if (states.length > 0) parameters.set("status", states.join(","));
  return spelled(parameters);
}

/** showFilters sets the form to the query of the list. The fields unfold if one of them selects. */
export function showFilters(query) {
  const parameters = new URLSearchParams(query);
  const states = (parameters.get("status") ?? "").split(",");
  for (const box of boxes()) box.checked = states.includes(box.value);
  for (const control of fields().querySelectorAll("[name]")) {
    control.value = parameters.get(control.name) ?? "";
    if (control.value) fields().open = true;
  }
  clearErrors(form());
}

/** refuseFilters shows what the service says about the filters, each at its input. */
export function refuseFilters(errors, message) {
  fields().open = true;
  showErrors(form(), errors, message);
}

/** showCounts shows how many subscriptions the store has in each state. */
export function showCounts(counts) {
  for (const box of boxes()) box.parentElement.querySelector(".count").textContent = box.value in counts ? number(counts[box.value]) : "";
}

/** isFiltered reports whether a query selects rows. */
export function isFiltered(query) {
  return [...new URLSearchParams(query).keys()].some((name) => !["page", "cursor", "per_page"].includes(name));
}

/** atPage returns a query for a page by its number. */
export function atPage(query, page) {
  const parameters = new URLSearchParams(query);
  parameters.delete("cursor"); // valid only for the page that it came with
  parameters.set("page", page);
  return spelled(parameters);
}

/**
 * ofLink returns the query of a page link. The links are absolute; the page uses only their
 * query and stays on its own origin.
 */
export function ofLink(link) {
  return spelled(new URL(link, document.baseURI).searchParams);
}

// Commas are allowed in a query, and "status=active,past_due" is easier to read in the log.
function spelled(parameters) {
  return parameters.size > 0 ? `?${parameters}`.replaceAll("%2C", ",") : "";
}
