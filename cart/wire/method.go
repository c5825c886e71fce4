package wire

import "net/http"

// StandardMethod reports whether a method is not one that a client made up. Only such a method
// may be a name in metrics and traces.
func StandardMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return true
	}
	return false
}
