// Fills forms, sends them, and shows errors next to their inputs. An error names the request fields at
// fault, and the controls of a form have the names of these fields.

import { el } from "./dom.js";

let lastId = 0;

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

/**
 * submit makes the call of a form, and shows a refusal in it. It returns the answer of a call
 * that succeeded; null for another, and for a second submit while the first one waits.
 */
export async function submit(form, call) {
  if (form.ariaBusy === "true") return null;
  clearErrors(form);
  form.ariaBusy = "true"; // disabled controls would lose the focus
  const answer = await call();
  form.ariaBusy = "false";
  if (isOfInput(answer)) showErrors(form, answer.errors, answer.message);
  return answer.ok ? answer : null;
}

/** isOfInput reports whether the error belongs next to the shopper's input. */
function isOfInput({ status, code }) {
  return status >= 400 && status < 500 && status !== 401 && status !== 429 && code !== "version_mismatch";
}

function refusalOf(text) {
  return el("p", { class: "refusal", id: `refusal-${++lastId}`, role: "alert" }, text);
}

function controlOf(form, member) {
  const control = form.elements.namedItem(member);
  return control instanceof RadioNodeList ? control[0] : control;
}
