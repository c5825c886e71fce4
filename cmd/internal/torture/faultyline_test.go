package torture

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// faultyLine is a proxy to a server. It can lose or delay data and cut connections.
type faultyLine struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// faultyLineTo starts a proxy to the server that a URL names, and returns the URL of the same
// server through the proxy.
func faultyLineTo(t testing.TB, rawURL string) (via string, line *faultyLine) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(api, "line", "127.0.0.1:0", u.Host)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	u.Host = proxy.Listen
	return u.String(), &faultyLine{t, proxy}
}

// blackhole drops all data. Connections stay open.
func (l *faultyLine) blackhole() { l.add("timeout", `{"timeout":0}`, "upstream", "downstream") }

// reset resets each connection when the client uses it.
func (l *faultyLine) reset() { l.add("reset_peer", `{"timeout":0}`, "upstream") }

// delay delays all replies.
func (l *faultyLine) delay(ms int) {
	l.add("latency", fmt.Sprintf(`{"latency":%d}`, ms), "downstream")
}

// heal ends all faults.
func (l *faultyLine) heal() { l.proxy.Toxics.ResetToxics(context.Background()) }

func (l *faultyLine) add(kind, attributes string, streams ...string) {
	l.t.Helper()
	for _, stream := range streams {
		toxic := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":%s}`, kind, stream, attributes)
		if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			l.t.Fatal(err)
		}
	}
}
