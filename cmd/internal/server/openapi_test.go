package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"commerce/docs"
)

// document is the OpenAPI description, loaded once for all tests.
var document = sync.OnceValues(func() (spec, error) {
	doc, err := openapi3.NewLoader().LoadFromData(docs.OpenAPI)
	if err != nil {
		return spec{}, err
	}
	router, err := gorillamux.NewRouter(doc)
	return spec{doc, router}, err
})

type spec struct {
	*openapi3.T
	router routers.Router
}

// basePath is the part of a request's path that the document does not know.
func (s *shop) basePath(r *http.Request) string {
	u, _ := url.Parse(s.URL)
	if strings.HasPrefix(r.URL.Path, u.Path) {
		return u.Path
	}
	return ""
}

// conforms holds a response against the document. HEAD answers as GET does; a 304
// and a HEAD have no body, but the headers of their answer. A preflight is the
// CORS layer's and not described.
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
	route, params, err := doc.router.FindRoute(as)
	switch {
	case errors.Is(err, routers.ErrPathNotFound):
		route = doc.only(http.StatusNotFound, doc.Components.Responses["NotFound"])
	case errors.Is(err, routers.ErrMethodNotAllowed):
		route = doc.only(http.StatusMethodNotAllowed, doc.Components.Responses["MethodNotAllowed"])
	case err != nil:
		return fmt.Errorf("find route: %w", err)
	}
	status := response.StatusCode
	if status == http.StatusNotModified { // the library passes any 304 and any HEAD unread
		ref := route.Operation.Responses.Status(status)
		if ref == nil {
			return errors.New("304 is not documented")
		}
		status = http.StatusOK
		route = doc.only(status, ref)
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: as, PathParams: params, Route: route},
		Status:                 status, Header: response.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: bare},
	}
	in.SetBodyBytes(body)
	return openapi3filter.ValidateResponse(r.Context(), in)
}

// only is a route with one possible answer.
func (s spec) only(status int, ref *openapi3.ResponseRef) *routers.Route {
	return &routers.Route{Spec: s.T, Operation: &openapi3.Operation{
		Responses: openapi3.NewResponses(openapi3.WithStatus(status, ref)),
	}}
}

func TestOpenAPI_DescribesEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	shop := openShop(t, embeddedRedis(t))
	for path, item := range doc.Paths.Map() {
		concrete := strings.NewReplacer("{item_id}", "1", "{id}", "1").Replace(path)
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			a := shop.guest(t).send(method, concrete, "")
			documented := item.GetOperation(method) != nil
			if served := a.Status != http.StatusMethodNotAllowed; served != documented {
				t.Errorf("%s %s: documented %v, served %v (%d)", method, path, documented, served, a.Status)
			}
			if !documented && !slices.Contains(strings.Split(a.Header.Get("Allow"), ", "), firstMethod(item)) {
				t.Errorf("%s %s: Allow is %q", method, path, a.Header.Get("Allow"))
			}
		}
	}
}

func firstMethod(item *openapi3.PathItem) string {
	for method := range item.Operations() {
		return method
	}
	return ""
}
