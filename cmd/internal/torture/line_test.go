package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"

	"commerce/deploy/assert"
)

// line is a proxy in front of a server. Its faults can change at any time.
type line struct {
	t       testing.TB
	proxy   *toxiproxy.Proxy
	replies *lossy // of what the server sends
}

func startLine(t testing.TB, upstream string) *line {
	t.Helper()
	toxics.Register("lossy", new(lossy))
	l := &line{t: t, proxy: newProxy(t, upstream)}
	added := assert.Must(l.proxy.Toxics.AddToxicJson(strings.NewReader(`{"type":"lossy","stream":"downstream","attributes":{}}`)))(t)
	l.replies = added.Toxic.(*lossy)
	assert.NoError(t, l.proxy.Start())
	return l
}

// lineTo starts a line to the server of a URL, and returns the URL of the line.
func lineTo(t testing.TB, server string) (l *line, via string) {
	t.Helper()
	via = through(t, server, func(upstream string) *toxiproxy.Proxy {
		l = startLine(t, upstream)
		return l.proxy
	})
	return l, via
}

// lineToService starts a line to a service, and returns the URL of its API.
func lineToService(t testing.TB, s *service) (*line, func() string) {
	t.Helper()
	l, through := lineTo(t, s.URL())
	return l, func() string { return through }
}

// cutReplies closes the connection instead of one reply in oneIn; 0 for never.
func (l *line) cutReplies(oneIn int64) { l.replies.oneIn.Store(oneIn) }

func (l *line) slow(by time.Duration) { l.replies.delay.Store(int64(by)) }

// swallow loses all replies, but leaves the connections open.
func (l *line) swallow(on bool) { l.replies.swallow.Store(on) }

// down closes all connections, and refuses new ones until up.
func (l *line) down() { l.proxy.Stop() }

func (l *line) up() {
	assert.Succeeds(l.t, l.proxy.Start(), "start the line to %s again", l.proxy.Upstream)
}

func (l *line) hangUp() {
	l.down()
	l.up()
}

// lossy is a toxic that stays on a line all the time. Removing one of toxiproxy's own toxics
// can hang if a connection breaks meanwhile.
type lossy struct {
	oneIn   atomic.Int64
	delay   atomic.Int64 // time.Duration
	swallow atomic.Bool

	cut atomic.Int64 // replies
}

// Pipe implements toxics.Toxic. A chunk is a reply or a part of a long reply.
func (f *lossy) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
			if n := f.oneIn.Load(); n > 0 && rand.Int64N(n) == 0 {
				f.cut.Add(1)
				stub.Close()
				for range stub.Input { // until both connections are closed
				}
				return
			}
			time.Sleep(time.Duration(f.delay.Load()))
			if !f.swallow.Load() {
				stub.Output <- chunk
			}
		}
	}
}

// newProxy returns a proxy to host:port, which the caller starts and the test stops.
func newProxy(t testing.TB, upstream string) *toxiproxy.Proxy {
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(api, "line", "127.0.0.1:0", upstream)
	t.Cleanup(proxy.Stop)
	return proxy
}

func through(t testing.TB, server string, start func(upstream string) *toxiproxy.Proxy) string {
	t.Helper()
	u := assert.Must(url.Parse(server))(t)
	u.Host = start(u.Host).Listen
	return u.String()
}

// faultyLine is a proxy to a server. It can lose or delay data and cut connections.
type faultyLine struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// faultyLineTo starts a proxy to the server of a URL, and returns the URL through it.
func faultyLineTo(t testing.TB, server string) (via string, line *faultyLine) {
	t.Helper()
	via = through(t, server, func(upstream string) *toxiproxy.Proxy {
		line = &faultyLine{t, newProxy(t, upstream)}
		assert.NoError(t, line.proxy.Start())
		return line.proxy
	})
	return via, line
}

func (l *faultyLine) blackhole() { l.add("timeout", `{"timeout":0}`, "upstream", "downstream") }

// reset resets each connection when the client uses it.
func (l *faultyLine) reset() { l.add("reset_peer", `{"timeout":0}`, "upstream") }

func (l *faultyLine) delay(ms int) { l.add("latency", fmt.Sprintf(`{"latency":%d}`, ms), "downstream") }

func (l *faultyLine) heal() { l.proxy.Toxics.ResetToxics(context.Background()) }

func (l *faultyLine) add(kind, attributes string, streams ...string) {
	l.t.Helper()
	for _, stream := range streams {
		toxic := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":%s}`, kind, stream, attributes)
		assert.Must(l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)))(l.t)
	}
}
