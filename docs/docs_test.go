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
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	gocmp "github.com/google/go-cmp/cmp"

	"commerce/deploy/assert"
	"commerce/docs"
)

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

func TestReference_IsInArabicWhereReadersScan(t *testing.T) {
	t.Parallel()
	var arabic struct {
		Title, Introduction string
		Headings            map[string]string
		Tags                map[string]struct{ Name, Description string }
		Operations          map[string]string
	}
	assert.NoError(t, json.Unmarshal(read(t, "reference/ar.json"), &arabic))
	doc := setup(t).doc
	var headings, tags, operations []string
	for _, match := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(doc.Info.Description, -1) {
		headings = append(headings, match[1])
	}
	for _, tag := range doc.Tags {
		tags = append(tags, tag.Name)
	}
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			operations = append(operations, operation.OperationID)
		}
	}
	for kind, ids := range map[string][2][]string{
		"headings":   {slices.Sorted(maps.Keys(arabic.Headings)), headings},
		"tags":       {slices.Sorted(maps.Keys(arabic.Tags)), tags},
		"operations": {slices.Sorted(maps.Keys(arabic.Operations)), operations},
	} {
		slices.Sort(ids[1])
		assert.Equal(t, ids[0], ids[1], "%s in ar.json", kind)
	}
	texts := slices.Concat(slices.Collect(maps.Values(arabic.Headings)), slices.Collect(maps.Values(arabic.Operations)), []string{arabic.Title, arabic.Introduction})
	for _, tag := range arabic.Tags {
		texts = append(texts, tag.Description)
	}
	for _, text := range texts {
		assert.That(t, regexp.MustCompile(`\p{Arabic}`).MatchString(text), "%q is not in Arabic", text)
	}
}
