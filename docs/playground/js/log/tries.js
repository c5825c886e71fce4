// Buttons that make a call, so that you can see it in the log.

/** startTries calls make with the path of a button. */
export function startTries(make) {
  for (const button of document.querySelectorAll("[data-try]")) {
    button.addEventListener("click", () => make(button.dataset.try));
  }
}
