// Shows the service's OpenAPI document with the viewer in viewer.js. Whatever would contact
// other hosts is off, and the page's Content-Security-Policy forbids it as well.

const base = new URL(".", location.href).href.replace(/\/$/, ""); // the page is <base>/docs

Scalar.createApiReference("#reference", {
  url: `${base}/openapi.json`,
  servers: [{ url: base, description: "This service." }],
  authentication: { preferredSecurityScheme: null },

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
    c: true, clojure: true, csharp: ["restsharp"], dart: true, fsharp: true, http: true, java: ["asynchttp", "nethttp", "unirest"],
    js: ["axios", "jquery", "ofetch", "xhr"], julia: true, kotlin: true, node: ["axios", "ofetch", "undici"], objc: true, ocaml: true,
    php: ["guzzle"], powershell: ["restmethod"], python: ["httpx_async", "httpx_sync", "python3", "aiohttp"], r: true, rust: true,
    shell: ["httpie", "wget"],
  },
  defaultOpenFirstTag: true,
  documentDownloadType: "direct",
});
