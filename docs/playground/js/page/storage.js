// What the page remembers between visits. If the browser has no storage (a private
// window, storage disabled), the page keeps it in memory until it is closed.

import { base } from "../api/base.js";

const prefix = `commerce:${base.pathname}:`; // two services may share an origin

function keep(area) {
  const memory = new Map();
  return {
    get(name) {
      try {
        return memory.get(name) ?? area().getItem(prefix + name) ?? "";
      } catch {
        return "";
      }
    },
    set(name, value) {
      try {
        if (value) area().setItem(prefix + name, value);
        else area().removeItem(prefix + name);
        memory.delete(name);
      } catch { // no storage, or it is full
        memory.set(name, value);
      }
    },
  };
}

/** lasting survives closing the browser: the guest's cart token, the language. */
export const lasting = keep(() => localStorage);

/** passing lasts until the tab is closed: credentials. */
export const passing = keep(() => sessionStorage);
