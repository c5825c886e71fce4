// A request as code: curl, fetch or the storefront's client, to look at and to copy.

import { clientOf } from "./clientcall.js";
import { curlOf, fetchOf } from "./codecalls.js";
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
  const shortened = el("p", { class: "hint" }, t("tokensShortened"));
  let kind = writers[lasting.get("snippet")] ? lasting.get("snippet") : "curl";

  function show(text) {
    code.textContent = text;
    shortened.hidden = text === writers[kind](request);
  }
  const choose = (chosen) => {
    kind = chosen;
    lasting.set("snippet", kind);
    show(writers[kind](veiledRequest(request)));
  };
  choose(kind);
  return el("div", { class: "snippet-box" },
    el("div", { class: "snippet-bar" },
      el("div", { class: "segments", role: "radiogroup", "aria-label": t("copyAs") }, Object.keys(writers).map((name) =>
        el("label", {},
          el("input", { type: "radio", name: group, value: name, checked: name === kind, onchange: () => choose(name) }),
          el("span", {}, name === "client" ? t("clientLibrary") : name)))),
      copyButton(() => writers[kind](request), (text) => {
        show(text); // copying by hand needs the whole text on the screen
        getSelection().selectAllChildren(code);
      })),
    el("pre", { class: "snippet", dir: "ltr", tabIndex: 0 }, code), shortened);
}

/** copyButton copies the text that textOf returns. It calls blocked with it if the browser forbids that. */
function copyButton(textOf, blocked) {
  const status = el("span", { class: "hidden", role: "status" });
  const button = el("button", { class: "copy", type: "button", onclick: copy }, t("copy"));
  let reset;
  async function copy() {
    const text = textOf();
    let said = "copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      said = "copyBlocked";
      blocked(text);
    }
    button.textContent = status.textContent = t(said);
    clearTimeout(reset);
    reset = setTimeout(() => {
      button.textContent = t("copy");
      status.textContent = "";
    }, 2500);
  }
  return [button, status];
}
