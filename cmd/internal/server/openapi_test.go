package server_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"commerce/cart/carthttp"
	"commerce/cart/handover"
	"commerce/cart/live"
	"commerce/cart/service"
	shares "commerce/cart/share"
	"commerce/cart/ucp"
	undos "commerce/cart/undo"
	"commerce/cart/wire"
	"commerce/deploy/assert"
	"commerce/docs"
	"commerce/subscriptions/subscriptionshttp"
	"commerce/subscriptions/suite"
)

// document is the OpenAPI description, loaded once for all tests.
var document = sync.OnceValues(func() (spec, error) {
	doc, err := openapi3.NewLoader().LoadFromData(docs.OpenAPI)
	if err != nil {
		return spec{}, err
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return spec{}, err
	}
	components, err := plainJSON(doc.Components)
	if err == nil {
		err = addConditions(components)
	}
	closeComponents(components)
	return spec{doc, router, components, &sync.Map{}}, err
})

func addConditions(components map[string]any) error {
	text, err := os.ReadFile("testdata/conditions.yaml")
	if err != nil {
		return err
	}
	var conditions map[string]map[string]any
	if err := yaml.Unmarshal(text, &conditions); err != nil {
		return err
	}
	for name, condition := range conditions {
		schema, ok := components["schemas"].(map[string]any)[name].(map[string]any)
		if !ok {
			return fmt.Errorf("no schema %s", name)
		}
		maps.Copy(schema, condition)
	}
	return nil
}

type spec struct {
	*openapi3.T
	router     routers.Router
	components map[string]any // the document's, as plain JSON, closed
	schemas    *sync.Map      // *openapi3.SchemaRef to *jsonschema.Schema
}

// basePath is the prefix of a request's path that is not in the document.
func (s *shop) basePath(r *http.Request) string {
	u, _ := url.Parse(s.URL)
	if strings.HasPrefix(r.URL.Path, u.Path) {
		return u.Path
	}
	return ""
}

// conforms compares a response with the document: one with a member or a code that is not
// documented does not conform, although clients must accept it. HEAD is like GET; a 304 and a
// HEAD have headers but no body. CORS preflights are not in the document.
func conforms(r *http.Request, response *http.Response, basePath string) error {
	if r.Method == http.MethodOptions {
		return nil
	}
	doc, err := document()
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	bare := r.Method == http.MethodHead || response.StatusCode == http.StatusNotModified
	if bare && len(body) > 0 {
		return fmt.Errorf("%s answered %d with a body", r.Method, response.StatusCode)
	}
	as := r.Clone(r.Context())
	as.URL.Path, as.URL.RawPath = strings.TrimPrefix(r.URL.Path, basePath), strings.TrimPrefix(r.URL.RawPath, basePath)
	if as.Method == http.MethodHead {
		as.Method = http.MethodGet
	}
	route, _, err := doc.router.FindRoute(as)
	switch {
	case forAgents(as.URL.Path) && (errors.Is(err, routers.ErrPathNotFound) || errors.Is(err, routers.ErrMethodNotAllowed)):
		route = doc.only(response.StatusCode, doc.Components.Responses["AgentError"])
	case errors.Is(err, routers.ErrPathNotFound):
		route = doc.only(http.StatusNotFound, doc.Components.Responses["NotFound"])
	case errors.Is(err, routers.ErrMethodNotAllowed):
		route = doc.only(http.StatusMethodNotAllowed, doc.Components.Responses["MethodNotAllowed"])
	case err != nil:
		return fmt.Errorf("find route: %w", err)
	}
	status := response.StatusCode
	if status == http.StatusNotModified { // the library accepts any 304 and any HEAD
		ref := route.Operation.Responses.Status(status)
		if ref == nil {
			return errors.New("304 is not documented")
		}
		status = http.StatusOK
		route = doc.only(status, ref)
	}
	documented := cmp.Or(route.Operation.Responses.Status(status), route.Operation.Responses.Default())
	if documented == nil {
		return fmt.Errorf("status %d is not documented", status)
	}
	if err := doc.headersConform(documented.Value, response.Header); err != nil || bare {
		return err
	}
	contentType := response.Header.Get("Content-Type")
	media := documented.Value.Content.Get(contentType)
	switch {
	case len(documented.Value.Content) == 0 && len(body) == 0:
		return nil
	case media == nil:
		return fmt.Errorf("%q is not documented", contentType)
	case !strings.HasPrefix(contentType, "application/json"): // text, whose form the document only describes
		return nil
	}
	if !jsontext.Value(body).IsValid() {
		return errors.New("no JSON in UTF-8, or a member twice")
	}
	content, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	schema, err := doc.compiled(media.Schema)
	if err != nil {
		return err
	}
	if err := schema.Validate(content); err != nil || !forAgents(as.URL.Path) {
		return err
	}
	return agentsConform(content)
}

func (s spec) headersConform(documented *openapi3.Response, sent http.Header) error {
	for name, header := range documented.Headers {
		text := sent.Get(name)
		if len(sent.Values(name)) == 0 {
			if header.Value.Required {
				return fmt.Errorf("the header %s is missing", name)
			}
			continue
		}
		schema, err := s.compiled(header.Value.Schema)
		if err != nil {
			return err
		}
		var value any = text
		if header.Value.Schema.Value.Type.Is("integer") {
			if value, err = strconv.ParseInt(text, 10, 64); err != nil {
				return fmt.Errorf("the header %s: %w", name, err)
			}
		}
		if err := schema.Validate(value); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	return nil
}

// compiled returns a compiled schema. It compiles each only once: the OpenAPI library would do so
// for each response, which takes longer than the rest of a test.
func (s spec) compiled(schema *openapi3.SchemaRef) (*jsonschema.Schema, error) {
	if known, ok := s.schemas.Load(schema); ok {
		return known.(*jsonschema.Schema), nil
	}
	resource, err := plainJSON(schema)
	if err != nil {
		return nil, err
	}
	closeSchema(resource, true)
	compiled, err := compile(resource, s.components)
	if err == nil {
		s.schemas.Store(schema, compiled)
	}
	return compiled, err
}

func compile(schema, components map[string]any) (*jsonschema.Schema, error) {
	schema["components"] = components
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("response.json", schema); err != nil {
		return nil, err
	}
	return c.Compile("response.json")
}

func plainJSON(part any) (object map[string]any, err error) {
	text, err := json.Marshal(part)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	return object, err
}

func (s spec) only(status int, ref *openapi3.ResponseRef) *routers.Route {
	return &routers.Route{Spec: s.T, Operation: &openapi3.Operation{
		Responses: openapi3.NewResponses(openapi3.WithStatus(status, ref)),
	}}
}

func TestOpenAPI_HasEveryRegisteredRoute(t *testing.T) {
	t.Parallel()
	doc := assert.Must(document())(t)
	for _, route := range servedRoutes() {
		method, path, _ := strings.Cut(route, " ")
		item := doc.Paths.Value(path)
		assert.That(t, item != nil && item.GetOperation(method) != nil, "%s is served, but not in the document", route)
	}
}

// servedRoutes returns the methods and paths of all areas, as the document writes them.
func servedRoutes() (routes []string) {
	parameter := regexp.MustCompile(`:(\w+)`)
	carts := service.New(service.Config{Keys: handoverKeys})
	api := carthttp.New(nil, carts, "", nil, nil)
	handover.New(carts).Extend(api)
	undos.New(carts).Extend(api)
	shares.New(carts, nil).Extend(api)
	live.New(carts, live.Config{}).Extend(api)
	for _, area := range []wire.Area{api.Area(), ucp.New(ucp.Config{}).Area(), subscriptionshttp.New(subscriptionshttp.Config{}).Area(suite.Calls(suite.NewMemory(nil, nil))...)} {
		for _, route := range area.Routes {
			routes = append(routes, route.Method+" "+parameter.ReplaceAllString(route.Path, "{$1}"))
		}
	}
	slices.Sort(routes)
	return routes
}

// TestConforms_CatchesDrift and TestConforms_CatchesWrongHeaders are about members and headers.
func TestConforms_DetectsAnotherStatusOrForm(t *testing.T) {
	c := newShop(t).guest(t)
	good := c.add(`{"product_id":1}`)
	judge := func(status int, body, contentType string) error {
		r := assert.Must(http.NewRequestWithContext(t.Context(), "POST", c.shop.URL+"/cart/add", nil))(t)
		header := good.Header.Clone()
		header.Set("Content-Type", contentType)
		return conforms(r, &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}, "")
	}
	const asJSON = "application/json; charset=utf-8"
	assert.NoError(t, judge(200, string(good.Raw), asJSON))
	assert.That(t, judge(201, string(good.Raw), asJSON) != nil, "another status passed")
	assert.That(t, judge(404, string(good.Raw), asJSON) != nil, "the body of another status passed")
	assert.That(t, judge(200, "["+string(good.Raw), asJSON) != nil, "no JSON passed")
	assert.That(t, judge(200, strings.Replace(string(good.Raw), `"data":{`, `"data":{"count":1,`, 1), asJSON) != nil, "a member twice passed")
	assert.That(t, judge(200, string(good.Raw), "text/plain") != nil, "plain text passed")
}

func TestDocument_IsTheSameAsYAMLAndJSON(t *testing.T) {
	c := newShop(t).guest(t)
	asYAML, asJSON := c.ok("GET", "/openapi.yaml", ""), c.ok("GET", "/openapi.json", "")
	assert.That(t, bytes.Equal(asYAML.Raw, docs.OpenAPI), "openapi.yaml is not served as it is written")
	assert.Equal(t, loaded(t, asJSON.Raw), loaded(t, asYAML.Raw), "JSON, compared with YAML")
	for path, a := range map[string]answer{"/openapi.yaml": asYAML, "/openapi.json": asJSON} {
		assert.Equal(t, a.Header.Get("Cache-Control"), "public, max-age=300", "%s: Cache-Control", path)
		assert.Equal(t, c.send("GET", path, "", "If-None-Match", a.Header.Get("ETag")).Status, http.StatusNotModified, "%s: status for its own ETag", path)
	}
}

// What answers 304 says how to ask for it, and a proxy's header is one of the response.
func TestDocument_NamesTheHeadersOfRevalidationAndOfStreams(t *testing.T) {
	t.Parallel()
	doc := assert.Must(document())(t)
	for path, item := range doc.Paths.Map() {
		get := item.Get
		if get == nil || get.Responses.Status(http.StatusNotModified) == nil {
			continue
		}
		assert.That(t, get.Parameters.GetByInAndName("header", "If-None-Match") != nil, "%s answers 304, but has no If-None-Match", path)
		for _, status := range []int{http.StatusOK, http.StatusNotModified} {
			headers := get.Responses.Status(status).Value.Headers
			assert.That(t, headers["RateLimit-Limit"] != nil && headers["ETag"] != nil, "%s: %d lacks headers", path, status)
		}
	}
	assert.That(t, doc.Paths.Value("/subscriptions/changes").Get.Responses.Status(http.StatusOK).Value.Headers["X-Accel-Buffering"] != nil, "X-Accel-Buffering is missing")
}

func loaded(t *testing.T, text []byte) any {
	t.Helper()
	doc := assert.Must(openapi3.NewLoader().LoadFromData(text))(t)
	return decode[any](t, assert.Must(doc.MarshalJSON())(t))
}
