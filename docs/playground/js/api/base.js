/** base is the base URL of the API: this page's own folder. */
export const base = new URL(".", document.baseURI);
