package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"commerce/auth/locale"
	"commerce/docs"
)

func openAPIDocument(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(docs.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestProblems_HaveTheCodesOfTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	var documented []string
	for _, code := range openAPIDocument(t).Components.Schemas["ErrorCode"].Value.Enum {
		documented = append(documented, code.(string))
	}
	slices.Sort(documented)
	if known := slices.Sorted(maps.Keys(statuses)); !slices.Equal(known, documented) {
		t.Errorf("the server knows %q,\nthe document %q", known, documented)
	}
}

// codesOf collects what a response's schema says "code" may be.
func codesOf(schema *openapi3.Schema, into map[string]bool) {
	for _, parts := range [][]*openapi3.SchemaRef{schema.AllOf, schema.OneOf, schema.AnyOf} {
		for _, part := range parts {
			codesOf(part.Value, into)
		}
	}
	code := schema.Properties["code"]
	if code == nil || code.Ref != "" { // a reference is to all codes
		return
	}
	if only, ok := code.Value.Const.(string); ok {
		into[only] = true
	}
	for _, one := range code.Value.Enum {
		into[one.(string)] = true
	}
}

func TestProblems_AreDocumentedUnderTheirStatus(t *testing.T) {
	t.Parallel()
	doc := openAPIDocument(t)
	seen := map[string]bool{}
	check := func(where string, status int, response *openapi3.Response) {
		codes := map[string]bool{}
		codesOf(response.Content.Get("application/json").Schema.Value, codes)
		if len(codes) == 0 {
			t.Errorf("%s: %d names no code", where, status)
		}
		for code := range codes {
			seen[code] = true
			if statuses[code] != status {
				t.Errorf("%s: %s is documented as %d and answered as %d", where, code, status, statuses[code])
			}
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				if n, _ := strconv.Atoi(status); n >= 400 {
					check(method+" "+path, n, response.Value)
				}
			}
		}
	}
	check("any path", http.StatusNotFound, doc.Components.Responses["NotFound"].Value)
	check("any method", http.StatusMethodNotAllowed, doc.Components.Responses["MethodNotAllowed"].Value)
	for code := range statuses {
		if !seen[code] {
			t.Errorf("no response is documented to carry %s", code)
		}
	}
}

func TestProblems_OfTheServerSpeakEveryLanguage(t *testing.T) {
	t.Parallel()
	for _, p := range []*plain{errNotFound, errMethodNotAllowed, errRateLimited, errUnavailable, errInternal} {
		if statuses[p.Code()] == 0 {
			t.Errorf("%s has no status", p.code)
		}
		if en, ar := p.Message(locale.En), p.Message(locale.Ar); en == "" || ar == "" || en == ar {
			t.Errorf("%s: %q and %q", p.code, en, ar)
		}
	}
}

// odd is a problem whose code nobody listed.
type odd struct{ *plain }

func TestAsProblem_TellsOnlyWhatWasForeseen(t *testing.T) {
	t.Parallel()
	unlisted := odd{&plain{code: "surprise"}}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"a problem":          {errNotFound, "not_found"},
		"a wrapped problem":  {fmt.Errorf("call: %w", errRateLimited), "rate_limited"},
		"a joined problem":   {errors.Join(errors.New("x"), errUnavailable), "unavailable"},
		"an unlisted code":   {unlisted, "internal"},
		"anything":           {errors.New("dial tcp 10.0.0.1"), "internal"},
		"out of time":        {fmt.Errorf("call: %w", context.DeadlineExceeded), "unavailable"},
		"the caller is gone": {fmt.Errorf("call: %w", context.Canceled), "unavailable"},
	} {
		got := asProblem(tt.err)
		if got.Code() != tt.want || strings.Contains(got.Message(locale.En), "10.0.0.1") {
			t.Errorf("%s: %s %q, want %s", name, got.Code(), got.Message(locale.En), tt.want)
		}
	}
}
