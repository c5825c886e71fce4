// A quantity with a button on either side.

import { el, icon } from "./dom.js";
import { t } from "./language.js";

/**
 * stepper makes the control. change is called with each new whole number; without it
 * the number simply stands in a form.
 *
 * @param {{name: string, of: string, value: number, key: string, change?: (n: number) => void}} options
 *   name of the input, of what, and a key to find the focus again
 */
export function stepper({ name, of, value, key, change }) {
  const input = el("input", {
    name, value, inputMode: "numeric", autocomplete: "off", "aria-label": `${t("quantity")}: ${of}`, "data-key": `${key}-n`,
    onchange: () => {
      if (Number.isNaN(Number(input.value)) && change) input.value = value; // not a number: as it was
      else change?.(Number(input.value));
    },
  });
  const step = (by) => {
    input.value = Math.max((Number(input.value) || 0) + by, 0);
    change?.(Number(input.value));
  };
  return el("span", { class: "stepper", role: "group" },
    el("button", { type: "button", "aria-label": t("fewer", { name: of }), "data-key": `${key}-less`, onclick: () => step(-1) }, icon("minus")),
    input,
    el("button", { type: "button", "aria-label": t("more", { name: of }), "data-key": `${key}-more`, onclick: () => step(1) }, icon("plus")));
}
