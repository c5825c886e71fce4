// Shows the service's OpenAPI document with the viewer in viewer.js. Whatever would contact
// other hosts is off, and the page's Content-Security-Policy forbids it as well.

const base = new URL(".", location.href).href.replace(/\/$/, ""); // the page is <base>/docs

// Optional parameters that the sample requests have. With all of them, most samples would be
// refused: If-Match, for example, names a cart that nobody has.
const sampled = ["X-Public-Key", "X-Cart-Token", "Idempotency-Key"];

/** show renders the document at the page's #reference. */
function show(api) {
  for (const parameter of Object.values(api.components.parameters)) {
    if (parameter.required || sampled.includes(parameter.name)) continue;
    parameter.examples = { sample: { value: parameter.example, "x-disabled": true } };
    delete parameter.example;
  }
  Scalar.createApiReference("#reference", {
    content: api,
    servers: [{ url: base, description: "This service." }],

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

async function load() {
  const response = await fetch(`${base}/openapi.json`);
  if (!response.ok) throw new Error(`openapi.json: ${response.status}`);
  show(await response.json());
}

load().catch((error) => {
  document.querySelector("#reference").textContent = `The document cannot be loaded. Please reload this page. (${error.message})`;
});
