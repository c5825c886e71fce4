// The form above the list: which subscriptions it shows, and how many on a page.

import { byId, el, icon } from "../page/dom.js";
import { clearErrors, showErrors } from "../page/forms.js";
import { number, onLanguage, t } from "../page/language.js";
import { filtersIn, inStates, queryOf, without } from "./query.js";
import { statuses } from "./status.js";

const fields = ["customerEmail", "customerPhone", "customerCountryCode", "externalCustomerId", "per_page"];

const labels = {
  customerEmail: "email", customerPhone: "phone", customerCountryCode: "callingCode", externalCustomerId: "externalId",
};

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
    apply(name ? without(shown, name) : "");
  });
  onLanguage(drawActive);
}

/** showFilters sets the form to the query of the list. */
export function showFilters(query) {
  shown = query;
  const form = byId("subscription-filters");
  const parameters = new URLSearchParams(query);
  for (const name of fields) form.elements[name].value = parameters.get(name) ?? "";
  const states = (parameters.get("status") ?? "").split(",");
  for (const box of boxes()) box.checked = states.includes(box.value);
  clearErrors(form);
  drawActive();
}

/** refuseFilters shows what the service says about the filters, each at its input. */
export function refuseFilters(errors, message) {
  if (Object.keys(errors).some((name) => fields.includes(name))) unfold(true);
  showErrors(byId("subscription-filters"), errors, message);
}

/** showCounts shows how many subscriptions the store has in each state. */
export function showCounts(counts) {
  for (const box of boxes()) box.parentElement.querySelector(".count").textContent = box.value in counts ? number(counts[box.value]) : "";
}

function queryOfForm(form) {
  const values = fields.map((name) => [name, form.elements[name].value.trim()]);
  const states = boxes().filter((box) => box.checked).map((box) => box.value);
  return inStates(queryOf(values), states);
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
  const chips = active.filter(([name]) => name !== "status").map(([name, value]) => el("li", {},
    el("button", { type: "button", class: "chip", "data-name": name, "aria-label": t("removeFilter", { filter: `${t(labels[name])} ${value}` }) },
      el("span", { class: "hint" }, t(labels[name])), " ", el("bdi", { dir: "ltr" }, value), icon("close"))));
  const reset = active.length > 0 && el("li", {}, el("button", { type: "button", class: "plain" }, t("resetFilters")));
  byId("active-filters").replaceChildren(...[...chips, reset].filter(Boolean));
  byId("active-filters").hidden = active.length === 0;
}
