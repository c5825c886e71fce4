// A quantity input with a minus and a plus button.

import { el, icon } from "./dom.js";
import { t } from "./language.js";

/**
 * stepper makes the control. It calls change with each new whole number. Without change,
 * it is only an input of a form.
 *
 * @param {{name: string, of: string, value: number, by?: number, key: string, change?: (n: number) => void}} options
 *   name of the input, the product's name, what a button adds (default 1), and a key to
 *   restore the focus
 */
export function stepper({ name, of, value, by = 1, key, change }) {
  const input = el("input", {
    name, value, inputMode: "numeric", autocomplete: "off", "aria-label": `${t("quantity")}: ${of}`, "data-key": `${key}-n`,
    onchange: () => {
      if (Number.isNaN(Number(input.value)) && change) input.value = value; // not a number: restore the value
      else change?.(Number(input.value));
    },
  });
  const move = (by) => {
    input.value = Math.max((Number(input.value) || 0) + by, 0);
    change?.(Number(input.value));
  };
  return el("span", { class: "stepper", role: "group" },
    el("button", { type: "button", "aria-label": t("fewer", { name: of }), "data-key": `${key}-less`, onclick: () => move(-by) }, icon("minus")),
    input,
    el("button", { type: "button", "aria-label": t("more", { name: of }), "data-key": `${key}-more`, onclick: () => move(by) }, icon("plus")));
}
