// Pictures of products.

import { el, icon } from "../page/dom.js";

/** picture shows an image of the service, or a sign if there is none. */
export function picture(image, className) {
  if (!image?.url) return el("span", { class: `picture none ${className}` }, icon("unknown", "drawing"));
  return el("img", { class: `picture ${className}`, src: image.url, alt: "", width: 400, height: 300, loading: "lazy" });
}
