// Pictures of products.

import { base } from "../api/base.js";
import { el, icon } from "../page/dom.js";

const pictures = new URL("playground/pictures/", base);

/** pictureOf returns the image of a product of the sample store. */
export const pictureOf = ({ slug }) => ({ url: new URL(`${slug}.svg`, pictures).href });

/**
 * picture shows an image of the service. The page's policy allows only its own origin, so
 * images from elsewhere are replaced with a sign.
 */
export function picture(image, className) {
  const src = image && ours(image.url);
  if (!src) return el("span", { class: `picture none ${className}` }, icon("picture", "drawing"));
  return el("img", { class: `picture ${className}`, src, alt: "", width: 400, height: 300, loading: "lazy" });
}

/** ours returns the URL of a picture on this page's origin, or "" for one from elsewhere. */
function ours(url) {
  const { origin, href } = new URL(url, base);
  return origin === base.origin ? href : "";
}
