package torture

import (
	"context"
	"fmt"
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"commerce/deploy/assert"
)

// faultyLine is a proxy to a server. It can lose or delay data and cut connections.
type faultyLine struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// faultyLineTo starts a proxy to the server that a URL names, and returns the URL of the same
// server through the proxy.
func faultyLineTo(t testing.TB, server string) (via string, line *faultyLine) {
	t.Helper()
	via = through(t, server, func(upstream string) *toxiproxy.Proxy {
		line = &faultyLine{t, newProxy(t, upstream)}
		assert.NoError(t, line.proxy.Start())
		return line.proxy
	})
	return via, line
}

// blackhole drops all data. Connections stay open.
func (l *faultyLine) blackhole() { l.add("timeout", `{"timeout":0}`, "upstream", "downstream") }

// reset resets each connection when the client uses it.
func (l *faultyLine) reset() { l.add("reset_peer", `{"timeout":0}`, "upstream") }

// delay delays all replies.
func (l *faultyLine) delay(ms int) { l.add("latency", fmt.Sprintf(`{"latency":%d}`, ms), "downstream") }

// heal ends all faults.
func (l *faultyLine) heal() { l.proxy.Toxics.ResetToxics(context.Background()) }

func (l *faultyLine) add(kind, attributes string, streams ...string) {
	l.t.Helper()
	for _, stream := range streams {
		toxic := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":%s}`, kind, stream, attributes)
		assert.Must(l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)))(l.t)
	}
}
