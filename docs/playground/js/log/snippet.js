// A request as code: curl, fetch or the storefront's client, to look at and to copy.

import { clientOf } from "./clientcall.js";
import { curlOf } from "./curl.js";
import { fetchOf } from "./fetchcall.js";
import { el } from "../page/dom.js";
import { t } from "../page/language.js";
import { lasting } from "../page/storage.js";
import { veiledRequest } from "./veil.js";

const writers = { curl: curlOf, fetch: fetchOf, client: clientOf };

let lastId = 0;

/** snippetBox lets people choose a kind and copy it. The next box starts with the same kind. */
export function snippetBox(request) {
  const group = `snippet-${++lastId}`;
  const code = el("code");
  const pre = el("pre", { class: "snippet", dir: "ltr", tabIndex: 0 }, code);
  const shortened = el("p", { class: "hint" }, t("tokensShortened"));
  let kind = writers[lasting.get("snippet")] ? lasting.get("snippet") : "curl";

  function show() {
    code.textContent = writers[kind](veiledRequest(request));
    shortened.hidden = code.textContent === writers[kind](request);
  }
  const choose = (chosen) => {
    kind = chosen;
    lasting.set("snippet", kind);
    show();
  };
  // Copying by hand needs the whole text on the screen.
  function selectWhole(text) {
    code.textContent = text;
    shortened.hidden = true;
    getSelection().selectAllChildren(code);
  }
  show();
  return el("div", { class: "snippet-box" },
    el("div", { class: "snippet-bar" },
      el("div", { class: "segments", role: "radiogroup", "aria-label": t("copyAs") }, Object.keys(writers).map((name) =>
        el("label", {},
          el("input", { type: "radio", name: group, value: name, checked: name === kind, onchange: () => choose(name) }),
          el("span", {}, t(`snippet.${name}`))))),
      ...copyButton(() => writers[kind](request), selectWhole)),
    pre, shortened);
}

/** copyButton copies the text that textOf returns. It calls blocked if the browser forbids it. */
function copyButton(textOf, blocked) {
  const status = el("span", { class: "hidden", role: "status" });
  const button = el("button", { class: "copy", type: "button", onclick: copy }, t("copy"));
  let reset;
  async function copy() {
    const text = textOf();
    try {
      await navigator.clipboard.writeText(text);
      say(t("copied"));
    } catch {
      blocked(text);
      say(t("copyBlocked"));
    }
  }
  function say(text) {
    button.textContent = status.textContent = text;
    clearTimeout(reset);
    reset = setTimeout(() => {
      button.textContent = t("copy");
      status.textContent = "";
    }, 2500);
  }
  return [button, status];
}
