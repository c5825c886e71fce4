// Builds elements, without a framework and without markup in strings.

/**
 * el makes an element. Properties with names on* are listeners. Properties that the
 * element has are set on it, all others ("class", "list", names with "-") are attributes.
 * Properties and children that are null, undefined or false are left out.
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...shown(children));
  return element;
}

const shown = (children) => children.flat(2).filter((child) => child !== null && child !== undefined && child !== false && child !== "");

/** icon draws a symbol of the page. It is hidden from screen readers. */
export function icon(name, className = "icon") {
  const [svg, use] = ["svg", "use"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
  svg.setAttribute("class", className);
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#art-${name}`);
  svg.append(use);
  return svg;
}

/**
 * redraw replaces an element's children with what build returns, as el takes it. It keeps the focus: on the same
 * element if build uses it again, otherwise on the one with the same data-key, otherwise on `otherwise`.
 */
export function redraw(parent, build, otherwise) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  parent.replaceChildren(...shown(build()));
  if (!focused || focused === parent) return;
  const same = parent.contains(focused) ? focused : parent.querySelector(`[data-key="${CSS.escape(focused.dataset.key ?? "")}"]`);
  (same ?? otherwise)?.focus({ preventScroll: true });
}

export const byId = (id) => document.getElementById(id);
