// Building elements, without a framework and without markup in strings.

const SVG = "http://www.w3.org/2000/svg";

/**
 * el makes an element. Properties: on* are listeners, "class" and names with "-" or
 * of `attributes` are attributes, the rest are set on the element. null, undefined
 * and false are left out, of properties as of children.
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

/** icon draws a symbol of art.js; it says nothing to a screen reader. */
export function icon(name, className = "icon") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", className);
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#art-${name}`);
  svg.append(use);
  return svg;
}

/**
 * redraw replaces an element's children and keeps the focus where it was: on the
 * new element with the same data-key, else on `otherwise`.
 */
export function redraw(parent, children, otherwise) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.replaceChildren(...children);
  if (focused === undefined) return;
  const same = parent.querySelector(`[data-key="${CSS.escape(focused)}"]`);
  (same ?? otherwise)?.focus({ preventScroll: true });
}

/**
 * redrawIf replaces an element's children only when what they show, as a value that
 * becomes JSON, is another than last time: a live region is read out once. What is
 * new scrolls into view.
 */
export function redrawIf(parent, value, build) {
  const shown = JSON.stringify([document.documentElement.lang, value]);
  if (parent.dataset.shown === shown) return;
  parent.dataset.shown = shown;
  parent.replaceChildren(...build());
  if (parent.firstChild) parent.scrollIntoView({ block: "nearest" });
}

export const byId = (id) => document.getElementById(id);
