// What the page remembers between visits. A browser that keeps nothing (a private
// window, storage switched off) still works until the page is closed.

import { base } from "./base.js";

const prefix = `commerce:${base.pathname}:`; // two services may share an origin

function keep(area) {
  const memory = new Map();
  return {
    get(name) {
      try {
        return area().getItem(prefix + name) ?? "";
      } catch {
        return memory.get(name) ?? "";
      }
    },
    set(name, value) {
      memory.set(name, value);
      try {
        if (value) area().setItem(prefix + name, value);
        else area().removeItem(prefix + name);
      } catch {
        // kept in memory
      }
    },
  };
}

/** lasting survives the browser: the guest's cart token, the language. */
export const lasting = keep(() => localStorage);

/** passing ends with the tab: credentials. */
export const passing = keep(() => sessionStorage);
