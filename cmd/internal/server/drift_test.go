package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"commerce/deploy/assert"
	"commerce/docs"
)

// closeComponents closes the document's components. The parts of an allOf do not know each
// other's members, so a component is closed where a property, an item or a response refers to it.
func closeComponents(components map[string]any) {
	schemas, _ := components["schemas"].(map[string]any)
	for _, schema := range schemas {
		closeSchema(schema, false)
	}
}

// closeSchema closes schema, if it is the whole schema of a value, and those inside of it: no object
// may have a member that the schema does not describe, and a code must be one of those in
// x-extensible-enum. The document leaves its responses open, because a release may add members and
// codes. A test must notice one that is not documented.
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
			if conditional, ok := part.(map[string]any); ok {
				closeSchema(conditional["then"], false)
			}
		}
		describes = describes || composed
	}
	if whole && (describes || s["$ref"] != nil) {
		s["unevaluatedProperties"] = false
	}
}

// Whatever one member of an answer is made to be that it must not be, the validator of the tests
// says so. Each example is taken and every node in it spoilt in turn. What a later release may
// add, an unknown member or code, passes the document as clients read it.
func TestConforms_CatchesDrift(t *testing.T) {
	t.Parallel()
	doc := assert.Must(document())(t)
	components := assert.Must(plainJSON(doc.Components))(t)
	for name, response := range doc.Components.Responses {
		assert.That(t, strings.Contains(string(docs.OpenAPI), "/responses/"+name+`"`) || name == "NotFound" || name == "MethodNotAllowed",
			"response %s: no operation gives it", name)
		media := response.Value.Content.Get("application/json")
		if media == nil || strings.HasPrefix(name, "Agent") && name != "AgentError" { // whose schemas are not ours: see TestAgents_ConformToTheProtocol
			continue
		}
		assert.That(t, len(media.Examples) != 0, "response %s: no examples", name)
		strict := assert.Must(doc.compiled(media.Schema))(t)
		open := assert.Must(compile(assert.Must(plainJSON(media.Schema))(t), components))(t)
		for example, ref := range media.Examples {
			t.Run(name+"/"+example, func(t *testing.T) {
				t.Parallel()
				body := decode[any](t, assert.Must(json.Marshal(ref.Value.Value))(t))
				spoil(body, "", func(what string) {
					assert.That(t, strict.Validate(body) != nil, "%s: passes, want an error", what)
					if strings.HasSuffix(what, ": unknown member") || strings.HasSuffix(what, `: "no_such_code"`) {
						assert.Succeeds(t, open.Validate(body), "%s", what)
					}
				})
				assert.Succeeds(t, strict.Validate(body), "the example does not match once restored")
			})
		}
	}
}

func TestConforms_CatchesWrongHeaders(t *testing.T) {
	t.Parallel()
	doc := assert.Must(document())(t)
	examples := func(response *openapi3.Response) http.Header {
		header := http.Header{}
		for name, h := range response.Headers {
			header.Set(name, fmt.Sprint(h.Value.Example))
		}
		return header
	}
	for name, response := range doc.Components.Responses {
		assert.Succeeds(t, doc.headersConform(response.Value, examples(response.Value)), "the examples of %s", name)
	}
	for _, wrong := range []struct{ response, header, value string }{
		{"CartResponse", "X-Request-Id", ""},
		{"CartResponse", "ETag", ""},
		{"CartResponse", "ETag", `W/"Jm2xq8Vd.7-5d41402a"`},
		{"CartResponse", "Cache-Control", "public"},
		{"CartResponse", "X-Cart-Token", "abc"},
		{"ChangedCart", "Idempotency-Replayed", "yes"},
		{"Unavailable", "Retry-After", ""},
		{"RateLimited", "Retry-After", "Thu, 20 Nov 2025 10:00:00 GMT"},
		{"Unauthenticated", "WWW-Authenticate", ""},
		{"MethodNotAllowed", "Allow", ""},
	} {
		response := doc.Components.Responses[wrong.response].Value
		header := examples(response)
		if header.Del(wrong.header); wrong.value != "" {
			header.Set(wrong.header, wrong.value)
		}
		assert.That(t, doc.headersConform(response, header) != nil, "%s: %s %q passes", wrong.response, wrong.header, wrong.value)
	}
}

// spoil visits node with one thing wrong in it at a time: in every object an
// unknown member, each member missing, and each of another type; in every array
// each element of another type; every constrained text out of its form.
func spoil(node any, path string, visit func(what string)) {
	if strings.HasSuffix(path, "/metadata") {
		return // the merchant's own, whatever it is
	}
	switch node := node.(type) {
	case map[string]any:
		if !strings.HasSuffix(path, "/errors") { // names the request's members, whatever they are
			node["unforeseen"] = true
			visit(path + ": unknown member")
			delete(node, "unforeseen")
		}
		for _, key := range slices.Sorted(maps.Keys(node)) {
			at, value := path+"/"+key, node[key]
			for _, wrong := range wrongFor(node, key) {
				node[key] = wrong
				visit(fmt.Sprintf("%s: %#v", at, wrong))
			}
			node[key] = value
			if !optional(node, key) {
				delete(node, key)
				visit(at + ": missing")
				node[key] = value
			}
			spoil(value, at, visit)
		}
	case []any:
		for i, value := range node {
			at := fmt.Sprintf("%s/%d", path, i)
			node[i] = []any{}
			visit(at + ": wrong type")
			node[i] = value
			spoil(value, at, visit)
		}
	}
}

// optional reports whether object is complete without the member: the merge
// report, except where it is all there is, how many are to be had in the
// issue of an item, and where a person can go on.
func optional(object map[string]any, member string) bool {
	switch member {
	case "merge":
		return len(object) > 1
	case "available":
		return len(object) == 3 && object["code"] != nil
	}
	return member == "continue_url" || strings.HasPrefix(member, "fields.") || strings.HasPrefix(member, "ops.") // one of the request's members at fault
}

// wrongFor returns what the member cannot be: another type for any, and another
// word or form where the words or the form are fixed.
func wrongFor(object map[string]any, member string) []any {
	var wrong []any
	switch object[member].(type) {
	case []any:
		wrong = append(wrong, map[string]any{})
		if member != "outcomes" { // null after some replays
			wrong = append(wrong, nil)
		}
	case map[string]any, nil:
		wrong = append(wrong, []any{})
	case string:
		wrong = append(wrong, []any{}, true)
	default:
		wrong = append(wrong, []any{}, "7")
	}
	_, coupon := object["discount"]
	_, discount := object["automatic"]
	_, merge := object["adjusted"]
	switch member {
	case "code":
		_, named := object[member].([]any) // a request's member at fault
		_, handover := object["url"]
		if !coupon && !discount && !named && !handover {
			wrong = append(wrong, "no_such_code")
		}
		if !coupon && !merge && !discount { // a merge has null for a code, and so has an automatic discount
			wrong = append(wrong, nil)
		}
	case "type":
		if coupon {
			wrong = append(wrong, "free")
		}
	case "duration":
		wrong = append(wrong, "weekly")
	case "item_id", "request_id":
		wrong = append(wrong, "a b", "")
	case "cart_token":
		wrong = append(wrong, "short", strings.Repeat("a", 129))
	case "currency":
		wrong = append(wrong, "sar", nil)
	case "expires_at":
		wrong = append(wrong, "tomorrow", "2025-12-20")
	case "quantity", "version", "count":
		wrong = append(wrong, -1.0, 1.5, nil)
	case "status":
		wrong = append(wrong, 2.0)
	case "subtotal", "total", "unit_price":
		wrong = append(wrong, -1.0, nil)
	case "success", "required", "valid":
		wrong = append(wrong, nil, object[member] == false)
	}
	return wrong
}
