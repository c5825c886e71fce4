package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"commerce/docs"
)

func TestDocument_IsTheSameAsYAMLAndJSON(t *testing.T) {
	t.Parallel()
	c := openShop(t, embeddedRedis(t)).guest(t)
	asYAML, asJSON := c.ok("GET", "/openapi.yaml", ""), c.ok("GET", "/openapi.json", "")
	assert(t, bytes.Equal(asYAML.Raw, docs.OpenAPI), "openapi.yaml is not served as it is written")
	equal(t, loaded(t, asJSON.Raw), loaded(t, asYAML.Raw), "JSON, compared with YAML")
	for path, a := range map[string]answer{"/openapi.yaml": asYAML, "/openapi.json": asJSON} {
		equal(t, a.Header.Get("Cache-Control"), "public, max-age=300", "%s: Cache-Control", path)
		equal(t, c.send("GET", path, "", "If-None-Match", a.Header.Get("ETag")).Status, http.StatusNotModified, "%s: status for its own ETag", path)
		equal(t, c.send("GET", path, "", "Range", "bytes=900000000-").Status, http.StatusOK, "%s: status for a range", path)
	}
}

// What answers 304 says how to ask for it, and a proxy's header is one of the response.
func TestDocument_NamesTheHeadersOfRevalidationAndOfStreams(t *testing.T) {
	t.Parallel()
	doc := must(document())(t)
	for path, item := range doc.Paths.Map() {
		get := item.Get
		if get == nil || get.Responses.Status(http.StatusNotModified) == nil {
			continue
		}
		assert(t, get.Parameters.GetByInAndName("header", "If-None-Match") != nil, "%s answers 304, but has no If-None-Match", path)
		for _, status := range []int{http.StatusOK, http.StatusNotModified} {
			headers := get.Responses.Status(status).Value.Headers
			assert(t, headers["RateLimit-Limit"] != nil && headers["ETag"] != nil, "%s: %d lacks headers", path, status)
		}
	}
	assert(t, doc.Paths.Value("/subscriptions/changes").Get.Responses.Status(http.StatusOK).Value.Headers["X-Accel-Buffering"] != nil, "X-Accel-Buffering is missing")
}

// loaded returns a document as plain JSON values.
func loaded(t *testing.T, text []byte) (values any) {
	t.Helper()
	doc := must(openapi3.NewLoader().LoadFromData(text))(t)
	again, err := doc.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(again, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return values
}
