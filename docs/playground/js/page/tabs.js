// The two tabs. Arrow keys move between them, and the URL keeps the selected one.

import { byId } from "./dom.js";

/**
 * startTabs calls opened with the name of an area whenever its tab is shown. It returns the
 * function that shows an area.
 */
export function startTabs(opened) {
  const tabs = Array.from(document.querySelectorAll("[role=tab]"));
  const areaOf = (tab) => tab.getAttribute("aria-controls");

  function open(area) {
    for (const tab of tabs) {
      const chosen = areaOf(tab) === area;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      byId(areaOf(tab)).hidden = !chosen;
    }
    opened(area);
  }

  function choose(area) {
    history.replaceState(null, "", `#${area}`);
    open(area);
  }

  for (const [i, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(areaOf(tab)));
    tab.addEventListener("keydown", ({ key }) => {
      if (key !== "ArrowLeft" && key !== "ArrowRight") return;
      const next = tabs[(i + 1) % tabs.length]; // with two tabs, both directions lead to the other
      next.focus();
      next.click();
    });
  }
  const named = () => (location.hash === "#subscriptions" ? "subscriptions" : "store");
  addEventListener("hashchange", () => open(named()));
  open(named());
  return choose;
}
