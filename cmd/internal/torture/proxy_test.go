package torture

import (
	"net/url"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"commerce/deploy/assert"
)

// newProxy returns a proxy to host:port on a free port. The caller starts it; it stops with the
// test.
func newProxy(t testing.TB, upstream string) *toxiproxy.Proxy {
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(api, "line", "127.0.0.1:0", upstream)
	t.Cleanup(proxy.Stop)
	return proxy
}

// through returns the URL of a server with the address of a proxy that start starts to it.
func through(t testing.TB, server string, start func(upstream string) *toxiproxy.Proxy) string {
	t.Helper()
	u := assert.Must(url.Parse(server))(t)
	u.Host = start(u.Host).Listen
	return u.String()
}
