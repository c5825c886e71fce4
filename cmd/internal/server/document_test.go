package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"commerce/docs"
)

func TestDocument_IsTheSameAsYAMLAndJSON(t *testing.T) {
	t.Parallel()
	c := openShop(t, embeddedRedis(t)).guest(t)
	asYAML, asJSON := c.ok("GET", "/openapi.yaml", ""), c.ok("GET", "/openapi.json", "")
	if !bytes.Equal(asYAML.Raw, docs.OpenAPI) {
		t.Error("openapi.yaml is not served as it is written")
	}
	if diff := cmp.Diff(loaded(t, asYAML.Raw), loaded(t, asJSON.Raw)); diff != "" {
		t.Errorf("-YAML +JSON:\n%s", diff)
	}
	for path, a := range map[string]answer{"/openapi.yaml": asYAML, "/openapi.json": asJSON} {
		if cache := a.Header.Get("Cache-Control"); cache != "public, max-age=300" {
			t.Errorf("%s: Cache-Control %q", path, cache)
		}
		if again := c.send("GET", path, "", "If-None-Match", a.Header.Get("ETag")); again.Status != http.StatusNotModified {
			t.Errorf("%s: %d for its own ETag", path, again.Status)
		}
		if whole := c.send("GET", path, "", "Range", "bytes=900000000-"); whole.Status != http.StatusOK {
			t.Errorf("%s: %d for a range", path, whole.Status)
		}
	}
}

// What answers 304 says how to ask for it, and a proxy's header is one of the response.
func TestDocument_NamesTheHeadersOfRevalidationAndOfStreams(t *testing.T) {
	t.Parallel()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		get := item.Get
		if get == nil || get.Responses.Status(http.StatusNotModified) == nil {
			continue
		}
		if get.Parameters.GetByInAndName("header", "If-None-Match") == nil {
			t.Errorf("%s answers 304, but has no If-None-Match", path)
		}
		for _, status := range []int{http.StatusOK, http.StatusNotModified} {
			headers := get.Responses.Status(status).Value.Headers
			if headers["RateLimit-Limit"] == nil || headers["ETag"] == nil {
				t.Errorf("%s: %d lacks headers", path, status)
			}
		}
	}
	if doc.Paths.Value("/subscriptions/changes").Get.Responses.Status(http.StatusOK).Value.Headers["X-Accel-Buffering"] == nil {
		t.Error("X-Accel-Buffering is missing")
	}
}

// loaded returns a document as plain JSON values.
func loaded(t *testing.T, text []byte) (values any) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := doc.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(again, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return values
}
