// The areas of the page: the URL names the one that is shown, and the bar links to them.

import { byId } from "./dom.js";

/**
 * startTabs calls opened with the name of an area whenever it is shown. It returns the
 * function that shows an area.
 */
export function startTabs(opened) {
  const links = [...document.querySelectorAll(".tabs a")];
  const areas = links.map(({ hash }) => hash.slice(1));

  function open(area) {
    for (const link of links) link.ariaCurrent = link.hash === `#${area}` ? "page" : null;
    for (const other of areas) byId(other).hidden = other !== area;
    opened(area);
  }

  const named = () => areas.find((area) => location.hash === `#${area}`);
  addEventListener("hashchange", () => { if (named()) open(named()); });
  open(named() ?? areas[0]);
  return (area) => {
    history.replaceState(null, "", `#${area}`);
    open(area);
  };
}
