package auth

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// IsLoopback reports whether a host without a port is this machine.
func IsLoopback(host string) bool {
	addr, _ := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || addr.Unmap().IsLoopback()
}

// ForLoopback reports whether the Host of a request is this machine. The owner of a website can let its name lead to
// 127.0.0.1, and a browser then takes this process for the website.
func ForLoopback(r *http.Request) bool { return IsLoopback((&url.URL{Host: r.Host}).Hostname()) }

// IsLocal reports whether a request came from this machine, to a host that is this machine, and not through a proxy: a
// tunnel brings requests of other machines.
func IsLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	proxied := slices.ContainsFunc([]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host"}, func(name string) bool {
		return len(r.Header[name]) > 0
	})
	return err == nil && from.Addr().Unmap().IsLoopback() && ForLoopback(r) && !proxied
}
