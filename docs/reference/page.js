// Shows the service's OpenAPI document with the viewer in viewer.js, which runs after this script.
// Whatever would contact other hosts is off, and the page's Content-Security-Policy forbids it as
// well.

const base = new URL(".", location.href).href.replace(/\/$/, ""); // the page is <base>/docs

// The viewer would otherwise find out whether it can compile code, which the policy forbids.
globalThis.__zod_globalConfig = { jitless: true };

// Optional parameters that the sample requests have. With all of them, most samples would be
// refused: If-Match, for example, names a cart that nobody has.
const sampled = ["X-Public-Key", "X-Cart-Token", "Idempotency-Key", "UCP-Agent"];

// The page's own texts. ar.json has those of the document.
const texts = {
  en: {
    title: "API reference · Merchant Commerce Service", playground: "Playground", scenarios: "Scenarios", store: "Shop", subscriptions: "Subscriptions", reference: "API reference",
    itself: "English", copy: "Copy", body: "Body", failed: "The document cannot be loaded. Please reload this page.",
  },
  ar: {
    title: "مرجع الواجهة البرمجية · خدمة التجارة", playground: "ساحة التجربة", scenarios: "السيناريوهات", store: "المتجر", subscriptions: "الاشتراكات", reference: "مرجع الواجهة البرمجية",
    itself: "العربية", copy: "نسخ", body: "المحتوى", failed: "تعذّر تحميل المستند. أعد تحميل الصفحة.",
  },
};

const storageKey = `commerce:${new URL(base).pathname.replace(/\/?$/, "/")}:language`; // the playground's

/** chosenLanguage is the visitor's choice, also in the playground, otherwise the browser's. */
function chosenLanguage() {
  let chosen = null;
  try {
    chosen = localStorage.getItem(storageKey);
  } catch {
    // the browser has no storage
  }
  return texts[chosen] ? chosen : navigator.language.startsWith("ar") ? "ar" : "en";
}

const language = () => document.documentElement.lang;
const otherLanguage = () => (language() === "ar" ? "en" : "ar");

/** translate writes the page's own texts in a language. */
function translate(code) {
  const root = document.documentElement;
  [root.lang, root.dir] = [code, code === "ar" ? "rtl" : "ltr"];
  document.title = texts[code].title;
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = texts[code][element.dataset.t];
  const button = document.querySelector("#language");
  [button.lang, button.textContent] = [otherLanguage(), texts[otherLanguage()].itself];
}

/** inArabic translates what a reader scans: the introduction, the groups and the names of calls. */
function inArabic(api, arabic) {
  const [introduction] = api.info.description.split("\n## ", 1);
  const [sample] = /```[^]+?```/.exec(introduction);
  api.info.title = arabic.title;
  api.info.description = api.info.description
    .replace(introduction, () => arabic.introduction.replace("{sample}", () => sample) + "\n")
    .replaceAll(/^## (.+)$/gm, (_, heading) => `## ${arabic.headings[heading]}`);
  for (const tag of api.tags) {
    const { name, description } = arabic.tags[tag.name];
    Object.assign(tag, { "x-displayName": name, description });
  }
  for (const operation of Object.values(api.paths).flatMap(Object.values)) operation.summary = arabic.operations[operation.operationId];
}

/** show renders the document at the page's #reference. The demo lends an API token for samples. */
function show(api, lent) {
  return Scalar.createApiReference("#reference", {
    content: api,
    servers: [{ url: base, description: "" }],
    localization: { locale: language() },
    authentication: { securitySchemes: { store: { token: lent || "API_TOKEN" } } },

    telemetry: false,
    withDefaultFonts: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    showDeveloperTools: "never",
    hideClientButton: true,
    hideDarkModeToggle: true, // the page follows the system, as the playground does
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
 * helpReaders mends what the viewer lacks for screen readers and keyboards: names, roles, landmarks that repeat, and
 * what scrolls. It also shows samples in the page's colors, and marks what is in English on an Arabic page.
 */
function helpReaders() {
  const each = (selector, mend) => document.querySelectorAll(selector).forEach(mend);
  each(":is(.scalar-code-copy, [class*='copy-button']):not([aria-label])", (button) => {
    if (!button.innerText.trim()) button.ariaLabel = texts[language()].copy;
  });
  each(".cm-content:not([aria-label])", (code) => code.setAttribute("aria-label", texts[language()].body));
  each("[class*='copy-button'][aria-controls]", (button) => button.removeAttribute("aria-controls")); // names nothing
  each("button[role='none']", (button) => button.removeAttribute("role"));
  each(".code-input-lite__editor[role='combobox']", (input) => input.setAttribute("role", "textbox"));
  each("[role='combobox']:not([aria-expanded])", (search) => (search.ariaExpanded = "true"));
  each("[role='region']", (region) => region.removeAttribute("role"));
  each("section[aria-live][aria-label]", (region) => region.removeAttribute("aria-label"));
  each("code.custom-scroll:not([tabindex]), .cm-scroller[tabindex='-1'], .endpoints:not([tabindex])", (scrolls) => (scrolls.tabIndex = 0));
  each("main.references-rendered, .references-layout > aside", (below) => (below.inert = Boolean(document.querySelector(".scalar-client--open"))));
  each(".request-card.dark-mode", (sample) => sample.classList.remove("dark-mode"));
  if (language() !== "ar") return;
  each(".markdown > :not([lang])", (text) => {
    if (!/[\u0600-\u06ff]/.test(text.textContent)) [text.lang, text.dir] = ["en", "ltr"];
  });
}

async function get(file) {
  const response = await fetch(`${base}/${file}`);
  if (!response.ok) throw new Error(`${file}: ${response.status}`);
  return response.text();
}

async function load() {
  const [text, demo, arabic] = await Promise.all([get("openapi.json"), get("docs/demo.json"), get("docs/ar.json")]);
  new MutationObserver(helpReaders).observe(document.body, { childList: true, subtree: true, attributeFilter: ["class"] });
  const { api_token: lent } = JSON.parse(demo);
  for (const link of document.querySelectorAll(".top [hidden]")) link.hidden = !lent; // only the demo has both
  const draw = () => {
    const api = sampleDocument(text);
    if (language() === "ar") inArabic(api, JSON.parse(arabic));
    return show(api, lent);
  };
  let reference = draw();
  document.querySelector("#language").addEventListener("click", () => {
    reference.destroy();
    translate(otherLanguage());
    try {
      localStorage.setItem(storageKey, language());
    } catch {
      // the browser has no storage
    }
    reference = draw();
  });
}

addEventListener("DOMContentLoaded", () => {
  translate(chosenLanguage());
  if (!location.hash) history.replaceState(null, "", "#tag/cart/POST/cart/add"); // whose button sends it
  load().catch((error) => {
    document.querySelector("#reference").textContent = `${texts[language()].failed} (${error.message})`;
  });
});
