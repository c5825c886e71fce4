// Fills forms, sends them, and shows errors next to their inputs. An error names the request fields at
// fault, and the controls of a form have the names of these fields.

import { el } from "./dom.js";
import { language } from "./language.js";

let lastId = 0;

/** formOf makes a form in the page's language. Escape cancels it. */
export function formOf(properties, submitted, canceled, ...children) {
  return el("form", {
    ...properties, noValidate: true, lang: language(),
    onsubmit: (event) => { event.preventDefault(); submitted(); },
    onkeydown: (event) => { if (event.key === "Escape" && !event.isComposing) canceled(); },
  }, ...children);
}

/** refill sets the controls that [name, value] pairs name, such as those of FormData. */
export function refill(form, values) {
  for (const [name, value] of values) {
    const control = form.elements.namedItem(name);
    if (control) control.value = value;
  }
}

/** clearErrors removes what showErrors showed. */
export function clearErrors(form) {
  for (const message of form.querySelectorAll(".refusal")) message.remove();
  for (const control of form.querySelectorAll("[aria-invalid]")) {
    control.removeAttribute("aria-invalid");
    control.removeAttribute("aria-describedby");
  }
}

/**
 * showErrors puts each field's sentences under its control, and all other sentences under
 * the form. It moves the focus to the first control at fault.
 *
 * @param {HTMLFormElement} form
 * @param {Record<string, string[]>} errors by request field
 * @param {string} message to show if errors is empty
 */
export function showErrors(form, errors, message) {
  clearErrors(form);
  const unplaced = [];
  let first;
  for (const [member, sentences] of Object.entries(errors)) {
    const control = controlOf(form, member);
    if (!control) {
      unplaced.push(...sentences);
      continue;
    }
    first ??= control;
    const refusal = refusalOf(sentences.join(" "));
    control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-describedby", refusal.id);
    (control.closest(".row, fieldset") ?? control).after(refusal);
  }
  if (Object.keys(errors).length === 0) unplaced.push(message);
  if (unplaced.length > 0) form.append(refusalOf(unplaced.join(" ")));
  first?.focus();
}

/** isBusy reports whether a form waits for its answer. Its controls are not disabled, since they would lose the focus. */
export const isBusy = (form) => form.ariaBusy === "true";

/**
 * submit makes the call of a form, and shows a refusal in it. It returns the answer of a call
 * that succeeded; null for another, and for a second submit while the first one waits.
 */
export async function submit(form, call) {
  if (isBusy(form)) return null;
  clearErrors(form);
  form.ariaBusy = "true";
  const answer = await call();
  form.ariaBusy = "false";
  if (refusedByRule(answer)) showErrors(form, answer.errors, answer.message);
  return answer.ok ? answer : null;
}

/** refusedByRule reports whether the error belongs next to the shopper's input. */
export function refusedByRule(answer) {
  return answer.status >= 400 && answer.status < 500 && answer.status !== 401 && answer.status !== 429 &&
    answer.code !== "version_mismatch";
}

function refusalOf(text) {
  return el("p", { class: "refusal", id: `refusal-${++lastId}`, role: "alert" }, text);
}

function controlOf(form, member) {
  const control = form.elements.namedItem(member);
  return control instanceof RadioNodeList ? control[0] : control;
}
