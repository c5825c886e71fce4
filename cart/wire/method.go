package wire

import (
	"context"
	"net/http"
)

// originalMethod is the context key of the method that the client sent.
type originalMethod struct{}

// AsGet returns a request that handlers serve as GET.
func AsGet(r *http.Request) *http.Request {
	r = r.WithContext(context.WithValue(r.Context(), originalMethod{}, r.Method))
	r.Method = http.MethodGet
	return r
}

// MethodOf returns the method that the client sent, also of a request from AsGet.
func MethodOf(r *http.Request) string {
	if method, ok := r.Context().Value(originalMethod{}).(string); ok {
		return method
	}
	return r.Method
}

// StandardMethod reports whether a method is not one that a client made up. Only such a method
// may be a name in metrics and traces.
func StandardMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return true
	}
	return false
}
