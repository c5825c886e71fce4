// Shows the service's OpenAPI document with the viewer in viewer.js, which runs after this script.
// Whatever would contact other hosts is off, and the page's Content-Security-Policy forbids it as
// well.

const base = new URL(".", location.href).href.replace(/\/$/, ""); // the page is <base>/docs

// The viewer would otherwise find out whether it can compile code, which the policy forbids.
globalThis.__zod_globalConfig = { jitless: true };

// Optional parameters that the sample requests have. With all of them, most samples would be
// refused: If-Match, for example, names a cart that nobody has.
const sampled = ["X-Public-Key", "X-Cart-Token", "Idempotency-Key", "UCP-Agent"];

// The document is in English, and this page's own texts are also in Arabic.
const texts = {
  en: { title: "API reference · Merchant Commerce Service", reference: "API reference", playground: "Playground", failed: "The document cannot be loaded. Please reload this page." },
  ar: { title: "مرجع الواجهة البرمجية · خدمة التجارة", reference: "مرجع الواجهة البرمجية", playground: "ساحة التجربة", failed: "تعذّر تحميل المستند. أعد تحميل الصفحة." },
};

/** language is the visitor's choice in the playground, otherwise the browser's. */
function language() {
  let chosen = null;
  try {
    chosen = localStorage.getItem(`commerce:${new URL(base).pathname.replace(/\/?$/, "/")}:language`);
  } catch {
    // the browser has no storage
  }
  return texts[chosen] ? chosen : navigator.language.startsWith("ar") ? "ar" : "en";
}

/** translate writes the title and the texts of the page's bar. */
function translate() {
  const [code, bar] = [language(), document.querySelector(".top")];
  document.title = texts[code].title;
  bar.lang = code;
  bar.dir = code === "ar" ? "rtl" : "ltr";
  bar.querySelector("#title").textContent = texts[code].reference;
  bar.querySelector("#playground").textContent = texts[code].playground;
}

/** show renders the document at the page's #reference. The demo lends an API token for samples. */
function show(api, lent) {
  Scalar.createApiReference("#reference", {
    content: api,
    servers: [{ url: base, description: "This service." }],
    authentication: { securitySchemes: { store: { token: lent || "API_TOKEN" } } },

    telemetry: false,
    withDefaultFonts: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    showDeveloperTools: "never",
    hideClientButton: true,
    hideTestRequestButton: true, // the playground sends requests
    persistAuth: false,

    defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
    hiddenClients: {
      c: true, clojure: true, csharp: true, dart: true, fsharp: true, go: true, http: true, java: true, julia: true, kotlin: true,
      objc: true, ocaml: true, powershell: true, r: true, ruby: true, rust: true, swift: true,
    },
    defaultOpenFirstTag: true,
    documentDownloadType: "none", // the text has links to both forms
  });
}

/**
 * sampleDocument returns the document with samples that work when they are pasted one after
 * another: at this page's service, in a new cart, and each change with a key of its own.
 */
function sampleDocument(text) {
  const cartToken = JSON.parse(text).components.parameters.CartToken.example;
  const api = JSON.parse(text.replaceAll("http://localhost:8080", base).replaceAll(cartToken, randomText()));
  const { parameters } = api.components;
  for (const parameter of Object.values(parameters)) {
    if (parameter.required || sampled.includes(parameter.name)) continue;
    parameter.examples = { sample: { value: parameter.example, "x-disabled": true } };
    delete parameter.example;
  }
  const withKey = (parameter) => {
    const named = parameters[parameter.$ref?.split("/").pop()];
    return named?.name === "Idempotency-Key" ? { ...named, example: randomText() } : parameter;
  };
  for (const operation of Object.values(api.paths).flatMap(Object.values)) {
    if (operation.parameters) operation.parameters = operation.parameters.map(withKey);
  }
  return api;
}

/** randomText returns 22 characters that are valid in a cart token. */
function randomText() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/**
 * helpReaders names the buttons that the viewer leaves without a name for screen readers, says that the list below
 * the search is open, removes landmarks that have the same name, and lets keyboards scroll code.
 */
function helpReaders() {
  for (const [selector, name] of [["button[aria-pressed]", "Dark mode"], [".scalar-code-copy", "Copy"]]) {
    for (const button of document.querySelectorAll(`${selector}:not([aria-label])`)) {
      if (!button.innerText.trim()) button.setAttribute("aria-label", name);
    }
  }
  for (const search of document.querySelectorAll("[role='combobox']:not([aria-expanded])")) search.ariaExpanded = "true";
  for (const region of document.querySelectorAll("[role='region']")) region.removeAttribute("role");
  for (const code of document.querySelectorAll("code.custom-scroll:not([tabindex])")) code.tabIndex = 0;
}

async function get(file) {
  const response = await fetch(`${base}/${file}`);
  if (!response.ok) throw new Error(`${file}: ${response.status}`);
  return response.text();
}

async function load() {
  const [text, demo] = await Promise.all([get("openapi.json"), get("docs/demo.json")]);
  new MutationObserver(helpReaders).observe(document.body, { childList: true, subtree: true });
  const { api_token: lent } = JSON.parse(demo);
  document.querySelector("#playground").hidden = !lent; // only the demo has both
  show(sampleDocument(text), lent);
}

addEventListener("DOMContentLoaded", () => {
  translate();
  load().catch((error) => {
    const place = document.querySelector("#reference");
    place.lang = language();
    place.dir = "auto";
    place.textContent = `${texts[language()].failed} (${error.message})`;
  });
});
