// The tabs. Arrow keys move between them, and the URL keeps the selected one.

import { byId } from "./dom.js";

/**
 * startTabs calls opened with the name of an area whenever its tab is shown. It returns the
 * function that shows an area.
 */
export function startTabs(opened) {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const areas = tabs.map((tab) => tab.getAttribute("aria-controls"));

  function open(area) {
    for (const [i, tab] of tabs.entries()) {
      const chosen = areas[i] === area;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      byId(areas[i]).hidden = !chosen;
    }
    opened(area);
  }

  function choose(area) {
    history.replaceState(null, "", `#${area}`);
    open(area);
  }

  for (const [i, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(areas[i]));
    tab.addEventListener("keydown", ({ key }) => {
      const ahead = document.documentElement.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
      if (key !== "ArrowLeft" && key !== "ArrowRight") return;
      const next = tabs.at((i + (key === ahead ? 1 : -1)) % tabs.length);
      next.focus();
      next.click();
    });
  }
  const named = () => areas.find((area) => location.hash === `#${area}`);
  addEventListener("hashchange", () => { if (named()) open(named()); });
  open(named() ?? areas[0]);
  return choose;
}
