package wire

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"
)

// Call is what the server knows about a request before its handler runs. It is a value of the
// request's context, under CallKey.
type Call struct {
	Method string // that the client sent: handlers serve HEAD as GET
	Client string // that the request counts for; see Client
}

// CallKey is the key of a context value, a *Call.
type CallKey struct{}

// Client returns the client that a request counts for: its IPv4 address, or the /64
// network that one IPv6 subscriber gets.
func Client(c *gin.Context) string {
	if call, ok := c.Request.Context().Value(CallKey{}).(*Call); ok && call.Client != "" {
		return call.Client
	}
	return clientOf(c.ClientIP())
}

func clientOf(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	if addr.Is4() {
		return ip // an IPv4 address can be written in one way only
	}
	if addr = addr.Unmap(); addr.Is4() {
		return addr.String()
	}
	network, _ := addr.Prefix(64) // 64 fits every IPv6 address
	return network.String()
}

// AsGet returns a request that handlers serve as GET.
func AsGet(r *http.Request) *http.Request {
	r = r.WithContext(context.WithValue(r.Context(), CallKey{}, &Call{Method: r.Method}))
	r.Method = http.MethodGet
	return r
}

// MethodOf returns the method that the client sent, also of a request from AsGet.
func MethodOf(r *http.Request) string {
	if call, ok := r.Context().Value(CallKey{}).(*Call); ok {
		return call.Method
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
