package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/wire"
	"commerce/cmd/internal/server"
)

func TestRemoval_IsAnnouncedInEachResponseOfItsRoute(t *testing.T) {
	t.Parallel()
	removal := &wire.Removal{
		Deprecated: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		Sunset:     time.Date(2027, 7, 1, 0, 0, 0, 0, time.UTC),
	}
	h, _ := handlerOf(t, func(c *server.Config) {
		c.Areas = []wire.Area{{Routes: []wire.Route{
			{Method: "GET", Path: "/going", Removal: removal, Handle: func(*gin.Context) (wire.Answer, error) {
				return wire.Answer{Data: func(w *wire.Writer) { w.BeginObject(); w.EndObject() }}, nil
			}},
			{Method: "GET", Path: "/failing", Removal: removal, Handle: func(*gin.Context) (wire.Answer, error) {
				return wire.Answer{}, problem.New(problem.ProductNotFound, "", locale.Text{locale.En: "No."})
			}},
			{Method: "GET", Path: "/staying", Handle: func(c *gin.Context) (wire.Answer, error) { c.Status(204); return wire.Answer{}, nil }},
		}}}
	})
	for path, want := range map[string][2]string{
		"/going":   {"@1798761600", "Thu, 01 Jul 2027 00:00:00 GMT"},
		"/failing": {"@1798761600", "Thu, 01 Jul 2027 00:00:00 GMT"},
		"/staying": {},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			sent := ask(h, "192.0.2.1", method, path).Header()
			if got := [2]string{sent.Get("Deprecation"), sent.Get("Sunset")}; got != want {
				t.Errorf("%s %s: Deprecation and Sunset are %q, want %q", method, path, got, want)
			}
		}
	}
}

// sameRemoval compares what the document announces about a call with what its route does:
// `deprecated: true`, and the date in x-sunset.
func sameRemoval(served *wire.Removal, documented *openapi3.Operation) error {
	sunset, _ := documented.Extensions["x-sunset"].(string)
	switch {
	case served == nil && (documented.Deprecated || sunset != ""):
		return fmt.Errorf("the document announces its removal, but no response does")
	case served != nil && (!documented.Deprecated || sunset != served.Sunset.UTC().Format(time.DateOnly)):
		return fmt.Errorf("its responses announce its removal, but the document does not, or for another day")
	}
	return nil
}

func TestSameRemoval_DetectsDifferences(t *testing.T) {
	t.Parallel()
	in2027 := &wire.Removal{Sunset: time.Date(2027, 7, 1, 0, 0, 0, 0, time.UTC)}
	announced := func(deprecated bool, sunset string) *openapi3.Operation {
		return &openapi3.Operation{Deprecated: deprecated, Extensions: map[string]any{"x-sunset": sunset}}
	}
	for _, same := range []error{sameRemoval(nil, &openapi3.Operation{}), sameRemoval(in2027, announced(true, "2027-07-01"))} {
		if same != nil {
			t.Error(same)
		}
	}
	for name, err := range map[string]error{
		"only in the document": sameRemoval(nil, announced(true, "2027-07-01")),
		"only in responses":    sameRemoval(in2027, &openapi3.Operation{}),
		"another day":          sameRemoval(in2027, announced(true, "2027-07-02")),
		"not deprecated":       sameRemoval(in2027, announced(false, "2027-07-01")),
	} {
		if err == nil {
			t.Errorf("%s: passed", name)
		}
	}
}
