package torture

import (
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
	replies *lossy   // of what the server sends
	added   []string // toxics, by name
}

// startLine starts a line to host:port.
func startLine(t testing.TB, upstream string) *line {
	t.Helper()
	toxics.Register("lossy", new(lossy))
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &line{t: t, proxy: toxiproxy.NewProxy(api, "line", "127.0.0.1:0", upstream)}
	t.Cleanup(l.proxy.Stop)
	added := assert.Must(l.proxy.Toxics.AddToxicJson(strings.NewReader(`{"type":"lossy","stream":"downstream","attributes":{}}`)))(t)
	l.replies = added.Toxic.(*lossy)
	assert.NoError(t, l.proxy.Start())
	return l
}

// lineTo starts a line to the server of a URL, and returns the URL of the line.
func lineTo(t testing.TB, server string) (l *line, via string) {
	t.Helper()
	u := assert.Must(url.Parse(server))(t)
	l = startLine(t, u.Host)
	u.Host = l.proxy.Listen
	return l, u.String()
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

// aim closes all connections, and leads new ones to another server.
func (l *line) aim(upstream string) {
	l.t.Helper()
	l.down()
	assert.NoError(l.t, l.proxy.Update(&toxiproxy.Proxy{Listen: l.proxy.Listen, Upstream: upstream, Enabled: true}))
}

// blackhole loses requests and replies, but leaves the connections open.
func (l *line) blackhole() {
	l.add("timeout", "upstream", `{"timeout":0}`)
	l.add("timeout", "downstream", `{"timeout":0}`)
}

// reset resets each connection when the client uses it.
func (l *line) reset() { l.add("reset_peer", "upstream", `{"timeout":0}`) }

// lag delays all replies, by about as long.
func (l *line) lag(by, jitter time.Duration) {
	l.add("latency", "downstream", fmt.Sprintf(`{"latency":%d,"jitter":%d}`, by.Milliseconds(), jitter.Milliseconds()))
}

func (l *line) narrow(kibPerSecond int) {
	l.add("bandwidth", "downstream", fmt.Sprintf(`{"rate":%d}`, kibPerSecond))
}

// add adds one of toxiproxy's toxics. Removing one can hang if a connection breaks meanwhile.
func (l *line) add(kind, stream, attributes string) {
	l.t.Helper()
	name := kind + " " + stream
	toxic := fmt.Sprintf(`{"name":%q,"type":%q,"stream":%q,"attributes":%s}`, name, kind, stream, attributes)
	assert.Must(l.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)))(l.t)
	l.added = append(l.added, name)
}

// heal removes what add has added.
func (l *line) heal() {
	l.t.Helper()
	for _, name := range l.added {
		assert.NoError(l.t, l.proxy.Toxics.RemoveToxic(l.t.Context(), name))
	}
	l.added = nil
}

// lossy is a toxic that stays on a line all the time.
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
