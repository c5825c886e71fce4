// The drawings. They are fetched once and kept in the document, so that they also show
// while the service is unreachable.

import { base } from "../api/base.js";

export async function startArt() {
  try {
    const response = await fetch(new URL("playground/art.svg", base));
    if (!response.ok) return;
    const sheet = new DOMParser().parseFromString(await response.text(), "image/svg+xml").documentElement;
    sheet.setAttribute("class", "hidden");
    sheet.setAttribute("aria-hidden", "true");
    document.body.append(document.adoptNode(sheet));
  } catch {
    // the page also works without drawings
  }
}
