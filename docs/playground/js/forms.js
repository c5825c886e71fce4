// Refusals shown where they belong: an error answer names the members at fault, and
// a form's controls are named as the members are.

import { el } from "./dom.js";

let lastId = 0;

/** clearErrors takes back what showErrors showed. */
export function clearErrors(form) {
  for (const message of form.querySelectorAll(".refusal")) message.remove();
  for (const control of form.querySelectorAll("[aria-invalid]")) {
    control.removeAttribute("aria-invalid");
    control.removeAttribute("aria-describedby");
  }
}

/**
 * showErrors puts each member's sentences under its control, and whatever has no
 * control under the form. It moves the focus to the first control at fault.
 *
 * @param {HTMLFormElement} form
 * @param {Record<string, string[]>} errors by member
 * @param {string} message of the whole, for when no member is named
 */
export function showErrors(form, errors, message) {
  clearErrors(form);
  const homeless = [];
  let first;
  for (const [member, sentences] of Object.entries(errors)) {
    const control = controlOf(form, member);
    if (!control) {
      homeless.push(...sentences);
      continue;
    }
    first ??= control;
    const refusal = refusalOf(sentences.join(" "));
    control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-describedby", refusal.id);
    (control.closest(".row, fieldset") ?? control).after(refusal);
  }
  if (Object.keys(errors).length === 0) homeless.push(message);
  if (homeless.length > 0) form.append(refusalOf(homeless.join(" ")));
  first?.focus();
}

function refusalOf(text) {
  return el("p", { class: "refusal", id: `refusal-${++lastId}`, role: "alert" }, text);
}

function controlOf(form, member) {
  const control = form.elements.namedItem(member);
  return control instanceof RadioNodeList ? control[0] : control;
}
