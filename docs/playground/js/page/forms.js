// Fills forms, and shows errors next to their inputs. An error names the request fields at
// fault, and the controls of a form have the names of these fields.

import { el } from "./dom.js";

let lastId = 0;

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

function refusalOf(text) {
  return el("p", { class: "refusal", id: `refusal-${++lastId}`, role: "alert" }, text);
}

function controlOf(form, member) {
  const control = form.elements.namedItem(member);
  return control instanceof RadioNodeList ? control[0] : control;
}
