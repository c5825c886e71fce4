// The two devices, side by side. On narrow screens one is shown at a time.

import { byId } from "../page/dom.js";
import { onLanguage } from "../page/language.js";
import { Device } from "./device.js";

/**
 * startDevices returns { all, a, b, active, show, loadAll }. show brings a device to the
 * front, as a scenario does with the one that acts.
 */
export function startDevices() {
  const parent = byId("devices");
  const all = ["a", "b"].map((id) => new Device(id, parent));
  const switches = [...document.querySelectorAll("[data-device]")];
  const devices = {
    all, a: all[0], b: all[1], active: all[0],
    show(device) {
      devices.active = device;
      for (const other of all) other.root.classList.toggle("front", other === device);
      for (const button of switches) button.setAttribute("aria-pressed", String(button.dataset.device === device.id));
    },
    loadAll: () => Promise.all(all.map((device) => device.cart.load())),
  };
  for (const button of switches) button.addEventListener("click", () => devices.show(devices[button.dataset.device]));
  for (const device of all) {
    device.root.addEventListener("focusin", () => { devices.active = device; });
    // The ETag depends on the language, so the cart is read again.
    onLanguage(() => { if (device.cart.now) device.cart.load(); });
  }
  // Another device may have changed the cart meanwhile. A scenario reads its carts itself.
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !all.some(({ isLent }) => isLent)) devices.loadAll(); });
  devices.show(all[0]);
  return devices;
}

/** drawAccounts offers the demo's customers, when they are known. */
export function drawAccounts(devices) {
  for (const device of devices.all) device.account.draw();
}
