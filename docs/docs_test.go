package docs_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"commerce/deploy/assert"
	"commerce/docs"
	"commerce/docs/strict"
)

// bundle is the document, loaded, and a router over its paths.
type bundle struct {
	doc    *openapi3.T
	router routers.Router
}

func setup(t *testing.T) bundle {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(docs.OpenAPI)
	assert.Require(t, err == nil, "load openapi.yaml: %v", err)
	router, err := gorillamux.NewRouter(doc)
	assert.Require(t, err == nil, "route openapi.yaml: %v", err)
	return bundle{doc: doc, router: router}
}

func TestOpenAPI_IsValid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	assert.Require(t, b.doc.IsOpenAPI31OrLater(),
		"openapi: %s, want 3.1: before it, kin-openapi checks answers by the laxer rules of 3.0", b.doc.OpenAPI)
	err := b.doc.Validate(t.Context(), openapi3.EnableSchemaFormatValidation(), openapi3.EnableMultiError())
	assert.That(t, err == nil, "%v", err)
}

// Every error answer admits some codes and no word that is not a code; a
// misspelt one would otherwise make an answer that nothing can satisfy.
func TestOpenAPI_ErrorAnswersAdmitKnownCodes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	known := extensible(b.doc.Components.Schemas["ErrorCode"])
	for name, response := range b.doc.Components.Responses {
		media := response.Value.Content.Get("application/json")
		if media == nil || !narrows(media.Schema, "ErrorAnswer") {
			continue
		}
		codes := admittedCodes(media.Schema.Value)
		assert.That(t, len(codes) != 0, "%s: no code", name)
		for _, code := range codes {
			assert.That(t, slices.Contains(known, code), "%s: %v is not in ErrorCode", name, code)
		}
	}
}

// narrows reports whether schema builds on the named component.
func narrows(schema *openapi3.SchemaRef, component string) bool {
	return strings.HasSuffix(schema.Ref, "/"+component) ||
		slices.ContainsFunc(schema.Value.AllOf, func(s *openapi3.SchemaRef) bool { return narrows(s, component) })
}

// extensible returns the codes of this release in a schema that leaves room for more.
func extensible(code *openapi3.SchemaRef) []any {
	codes, _ := code.Value.Extensions["x-extensible-enum"].([]any)
	return codes
}

// admittedCodes collects what the narrowing parts of an error schema say of code.
func admittedCodes(schema *openapi3.Schema) []any {
	var codes []any
	for _, part := range schema.AllOf {
		if code := part.Value.Properties["code"]; code != nil && part.Ref == "" {
			codes = append(codes, extensible(code)...)
		}
	}
	return codes
}

func TestOpenAPI_ParameterAndHeaderExamplesMatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	check := func(name string, schema *openapi3.SchemaRef, example any) {
		if example == nil {
			t.Errorf("%s: no example", name)
			return
		}
		assert.Succeeds(t, schema.Value.VisitJSON(example, openapi3.EnableJSONSchema2020()), "%s", name)
	}
	for name, p := range b.doc.Components.Parameters {
		check("parameter "+name, p.Value.Schema, p.Value.Example)
	}
	for name, h := range b.doc.Components.Headers {
		check("header "+name, h.Value.Schema, h.Value.Example)
	}
}

func TestOpenAPI_RequestExamplesMatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, item := range b.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			media := op.RequestBody.Value.Content.Get("application/json")
			assert.That(t, len(media.Examples) != 0, "%s %s: no examples", method, path)
			for name, example := range media.Examples {
				assert.Succeeds(t, b.checkRequest(t, method, path, encode(t, example.Value.Value)),
					"%s %s, %s", method, path, name)
			}
		}
	}
}

func TestOpenAPI_RefusesWrongRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tests := []struct{ name, method, path, body string }{
		{"no product", http.MethodPost, "/cart/add", `{"qty":1}`},
		{"product as text", http.MethodPost, "/cart/add", `{"product_id":"1"}`},
		{"nothing to add", http.MethodPost, "/cart/add", `{"product_id":1,"qty":0}`},
		{"half of one", http.MethodPost, "/cart/add", `{"product_id":1,"quantity":0.5}`},
		{"plan without id", http.MethodPost, "/cart/add", `{"product_id":4,"subscription_plan":{}}`},
		{"field as number", http.MethodPost, "/cart/add", `{"product_id":5,"fields":{"0":1}}`},
		{"long notice", http.MethodPost, "/cart/add", `{"product_id":5,"notice":"` + strings.Repeat("x", 501) + `"}`},
		{"no quantity", http.MethodPatch, "/cart/items/{item_id}", `{}`},
		{"negative quantity", http.MethodPatch, "/cart/items/{item_id}", `{"qty":-1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var refused *openapi3filter.RequestError
			err := b.checkRequest(t, tt.method, tt.path, []byte(tt.body))
			assert.That(t, errors.As(err, &refused), "got %v, want a request error", err)
		})
	}
}

func (b bundle) checkRequest(t *testing.T, method, path string, body []byte) error {
	t.Helper()
	req := newRequest(method, path, bytes.NewReader(body))
	route, params, err := b.router.FindRoute(req)
	assert.Require(t, err == nil, "find %s %s: %v", method, path, err)
	return openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	})
}

func newRequest(method, path string, body io.Reader) *http.Request {
	req := httptest.NewRequest(method, strings.ReplaceAll(path, "{item_id}", "4.p41"), body)
	req.Header.Set("Content-Type", "application/json")
	return req
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	assert.Require(t, err == nil, "encode example: %v", err)
	return data
}

// answer is an example of one response, and the route that may give it.
type answer struct {
	name   string
	route  *routers.Route
	status int
	header http.Header
	body   any
	schema *jsonschema.Schema // of body; compiling one takes longer than using it often
	strict *jsonschema.Schema // the same, closed
}

// answers gives each JSON example of each response component once. A component
// that no operation refers to, since no operation can be named where it occurs
// (404 not_found, 405), stands on a route of its own.
func (b bundle) answers(t *testing.T) []answer {
	t.Helper()
	var all []answer
	statuses := map[string]int{"NotFound": http.StatusNotFound, "MethodNotAllowed": http.StatusMethodNotAllowed}
	for _, item := range b.doc.Paths.Map() {
		for _, op := range item.Operations() {
			for status, ref := range op.Responses.Map() {
				if ref.Ref == "" {
					continue
				}
				code, err := strconv.Atoi(status)
				assert.Require(t, err == nil, "%s: status %q: %v", op.OperationID, status, err)
				statuses[strings.TrimPrefix(ref.Ref, "#/components/responses/")] = code
			}
		}
	}
	for name, response := range b.doc.Components.Responses {
		status, used := statuses[name]
		assert.That(t, used, "response %s: no operation gives it", name)
		media := response.Value.Content.Get("application/json")
		if media == nil {
			continue
		}
		assert.That(t, len(media.Examples) != 0, "response %s: no examples", name)
		route := &routers.Route{Spec: b.doc, Operation: &openapi3.Operation{
			Responses: openapi3.NewResponses(openapi3.WithStatus(status, response)),
		}}
		open, closed := b.compile(t, media.Schema.Value, false), b.compile(t, media.Schema.Value, true)
		for example, ref := range media.Examples {
			body := decode[any](t, encode(t, ref.Value.Value))
			all = append(all, answer{name + "/" + example, route, status, exampleHeader(response.Value), body, open, closed})
		}
	}
	return all
}

// compile returns the compiled schema of a response's body, as it is or closed.
func (b bundle) compile(t *testing.T, schema *openapi3.Schema, closed bool) *jsonschema.Schema {
	t.Helper()
	resource, components := decode[map[string]any](t, encode(t, schema)), decode[map[string]any](t, encode(t, b.doc.Components))
	if closed {
		strict.Response(resource)
		strict.Components(components)
	}
	resource["components"] = components // the targets of its references
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	assert.NoError(t, c.AddResource("response.json", resource))
	return assert.Must(c.Compile("response.json"))(t)
}

func decode[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	assert.NoError(t, json.Unmarshal(text, &v))
	return v
}

func exampleHeader(response *openapi3.Response) http.Header {
	header := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	for name, h := range response.Headers {
		header.Set(name, fmt.Sprint(h.Value.Example))
	}
	return header
}

// check validates the answer as a suite on the real handlers does.
func (a answer) check(t *testing.T) error {
	t.Helper()
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: newRequest(http.MethodGet, "/cart", nil), Route: a.route},
		Status:                 a.status,
		Header:                 a.header,
		Options:                &openapi3filter.Options{IncludeResponseStatus: true},
	}
	input.SetBodyBytes(encode(t, a.body))
	return openapi3filter.ValidateResponse(t.Context(), input)
}

func TestOpenAPI_ResponseExamplesMatch(t *testing.T) {
	t.Parallel()
	for _, a := range setup(t).answers(t) {
		assert.Succeeds(t, a.check(t), "%s", a.name)
	}
}

// Whatever one member of an answer is made to be that it must not be, the validator of the tests
// says so. Each example is taken and every node in it spoilt in turn. What a later release may
// add, an unknown member or code, passes the document as clients read it.
func TestOpenAPI_CatchesDrift(t *testing.T) {
	t.Parallel()
	for _, a := range setup(t).answers(t) {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			spoil(a.body, "", func(what string) {
				assert.That(t, a.strict.Validate(a.body) != nil, "%s: passes, want an error", what)
				if strings.HasSuffix(what, ": unknown member") || strings.HasSuffix(what, `: "no_such_code"`) {
					assert.Succeeds(t, a.schema.Validate(a.body), "%s", what)
				}
			})
			assert.Succeeds(t, a.strict.Validate(a.body), "the example does not match once restored")
		})
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
// report, except where it is all there is, and how many are to be had in the
// issue of an item.
func optional(object map[string]any, member string) bool {
	switch member {
	case "merge":
		return len(object) > 1
	case "available":
		return len(object) == 3 && object["code"] != nil
	}
	return strings.HasPrefix(member, "fields.") || strings.HasPrefix(member, "ops.") // one of the request's members at fault
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
	_, merge := object["adjusted"]
	switch member {
	case "code":
		if !coupon {
			wrong = append(wrong, "no_such_code")
		}
		if !coupon && !merge { // a merge has null for a code
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

func TestOpenAPI_CatchesWrongHeaders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tests := []struct{ name, response, header, value string }{
		{"no request id", "CartResponse", "X-Request-Id", ""},
		{"no entity tag", "CartResponse", "ETag", ""},
		{"weak entity tag", "CartResponse", "ETag", `W/"Jm2xq8Vd.7-5d41402a"`},
		{"shared cache", "CartResponse", "Cache-Control", "public"},
		{"short cart token", "CartResponse", "X-Cart-Token", "abc"},
		{"replay in other words", "ChangedCart", "Idempotency-Replayed", "yes"},
		{"no time to wait", "Unavailable", "Retry-After", ""},
		{"a date to wait for", "RateLimited", "Retry-After", "Thu, 20 Nov 2025 10:00:00 GMT"},
		{"no challenge", "Unauthenticated", "WWW-Authenticate", ""},
		{"no methods", "MethodNotAllowed", "Allow", ""},
		{"plain text", "Internal", "Content-Type", "text/plain"},
	}
	answers := b.answers(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(answers, func(a answer) bool { return strings.HasPrefix(a.name, tt.response+"/") })
			a := answers[i]
			a.header = a.header.Clone()
			if a.header.Del(tt.header); tt.value != "" {
				a.header.Set(tt.header, tt.value)
			}
			var wrong *openapi3filter.ResponseError
			err := a.check(t)
			assert.That(t, errors.As(err, &wrong), "got %v, want a response error", err)
		})
	}
}

func TestOpenAPI_CatchesUndocumentedStatus(t *testing.T) {
	t.Parallel()
	a := setup(t).answers(t)[0]
	a.status = http.StatusTeapot
	err := a.check(t)
	assert.That(t, err != nil, "418 passes, want an error")
}

// The viewer in the repository is what reference/update.sh downloads.
func TestReference_HasTheViewerOfItsScript(t *testing.T) {
	t.Parallel()
	digest := regexp.MustCompile(`(?m)^digest=(\S+)`).FindSubmatch(read(t, "reference/update.sh"))
	assert.Require(t, digest != nil, "update.sh names no digest")
	stored := read(t, "reference/viewer.js.gz")
	assert.That(t, len(stored) <= 2<<20, "the viewer adds %d bytes to the binary", len(stored))
	r := assert.Must(gzip.NewReader(bytes.NewReader(stored)))(t)
	viewer := assert.Must(io.ReadAll(r))(t)
	assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256(viewer)), string(digest[1]), "digest of viewer.js; run update.sh")
	want := map[string]string{"@scalar/api-reference": licenseIn(t, "reference")}
	assert.Equal(t, gocmp.Diff(want, listed(t, string(read(t, "licenses.md")), "The API reference")), "",
		"licenses (-reference/LICENSE.txt +licenses.md):\n")
}
