// The two devices, side by side. On narrow screens one is shown at a time.

import { byId } from "../page/dom.js";
import { onLanguage } from "../page/language.js";
import { Device } from "./device.js";

/**
 * startDevices returns { all, a, b, active, show, openAll }. show brings a device to the
 * front, as a scenario does with the one that acts. openAll shows their carts.
 */
export function startDevices() {
  const all = ["a", "b"].map((id) => new Device(id, byId("devices")));
  const [a, b] = all;
  const switches = [...document.querySelectorAll("[data-device]")];
  const devices = {
    all, a, b, active: a,
    show(device) {
      devices.active = device;
      for (const other of all) other.root.classList.toggle("front", other === device);
      for (const button of switches) button.setAttribute("aria-pressed", String(button.dataset.device === device.id));
    },
    openAll: () => Promise.all(all.map(({ cart }) => cart.open())),
  };
  for (const button of switches) button.addEventListener("click", () => devices.show(devices[button.dataset.device]));
  for (const device of all) device.root.addEventListener("focusin", () => { devices.active = device; });
  // The ETag depends on the language, so the carts are read again.
  onLanguage(() => { if (a.cart.now) devices.openAll(); });
  // Another device may have changed the cart meanwhile. A scenario reads its carts itself.
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !all.some(({ isLent }) => isLent)) devices.openAll(); });
  devices.show(a);
  return devices;
}
