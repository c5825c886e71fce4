/** base is the address below which the whole API lies: this page's own folder. */
export const base = new URL(".", document.baseURI);
