// Package strict closes the schemas of the OpenAPI document for tests. The document leaves its
// responses open, because a release may add members and codes. A test must notice one that is
// not documented.
package strict

// Response closes the schema of a whole response, as plain JSON: no object may have a member
// that the schema does not describe, and a code must be one of those in x-extensible-enum.
func Response(schema map[string]any) { closeSchema(schema, true) }

// Components closes the document's components. The parts of an allOf do not know each
// other's members, so a component is closed where a property, an item or a response refers to it.
func Components(components map[string]any) {
	schemas, _ := components["schemas"].(map[string]any)
	for _, schema := range schemas {
		closeSchema(schema, false)
	}
}

// closeSchema closes schema, if it is the whole schema of a value, and those inside of it.
func closeSchema(schema any, whole bool) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if codes := s["x-extensible-enum"]; codes != nil {
		s["enum"] = codes
	}
	properties, describes := s["properties"].(map[string]any)
	for _, property := range properties {
		closeSchema(property, true)
	}
	closeSchema(s["items"], true)
	for _, composition := range []string{"allOf", "anyOf", "oneOf"} {
		parts, composed := s[composition].([]any)
		for _, part := range parts {
			closeSchema(part, false)
		}
		describes = describes || composed
	}
	if whole && (describes || s["$ref"] != nil) {
		s["unevaluatedProperties"] = false
	}
}
