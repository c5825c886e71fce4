// Package docs holds the service's documentation, and embeds the part of it
// that the binary serves.
package docs

import _ "embed"

// OpenAPI is the description of every route, in OpenAPI 3.1 and YAML: what GET
// /openapi.yaml answers with, and what the tests hold each answer against. Its
// server is "/", whatever the base path. Not to be modified.
//
//go:embed openapi.yaml
var OpenAPI []byte
