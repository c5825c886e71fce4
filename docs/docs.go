// Package docs embeds the part of the service's documentation that the binary serves.
package docs

import "embed"

// OpenAPI is the description of every route, in OpenAPI 3.1 and YAML: what GET
// /openapi.yaml answers with, and what the tests hold each answer against. Its
// server is "/", whatever the base path. Not to be modified.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Storefront is the client of the cart for storefronts. In a page, it also makes the published client's changes safe to repeat.
//
//go:embed storefront.js
var Storefront []byte

// Playground is the page that tries the API in a browser, below the folder
// playground: index.html, and what it loads by addresses relative to its own.
//
//go:embed playground
var Playground embed.FS

// Reference is the page that shows OpenAPI in a browser, below the folder
// reference: index.html and what it loads, and the look of Playground. Files that end
// in .gz are compressed, because the viewer has 4 MB.
//
//go:embed reference/index.html reference/page.css reference/page.js reference/ar.json reference/viewer.js.gz reference/LICENSE.txt
//go:embed playground/icon.svg playground/css/bar.css playground/css/fonts.css playground/css/theme.css playground/fonts
var Reference embed.FS
