package torture

import (
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Shoppers use two instances through haproxy at full load, while the test replaces one instance
// after the other. Not parallel: beside the load of other tests, Postgres is too slow for the
// empty caches of a new instance.
func TestPromise10_AReplacementDropsNobody(t *testing.T) {
	ephemeral.Slow(t)
	p := promised(t, 10, "SIGTERM and a rolling replacement drop nobody", "0 failed requests; exit 0 within 10 s")
	redis, database := ephemeral.StartRedis(t), catalog(t)
	command(t, []string{"DATABASE_URL=" + database}, "migrate", "up") // so that changes can be read in this copy of a database
	settings := []string{"REDIS_URL=" + redis.URL, "DATABASE_URL=" + database, "TRUSTED_PROXIES=127.0.0.1"}
	instances := []*service{startService(t, settings...), startService(t, settings...)}
	c := &crowd{p: p, url: startHAProxy(t, instances[0], instances[1]), reader: apiToken(t, database, "torture"), secret: jwtSecret}
	stop := c.arrive(t, sized(8, 32), "regular")
	defer stop()

	rounds := sized(1, 12)
	bar := p.progress("rolling replacements", rounds*len(instances))
	var slowest time.Duration
	for range rounds {
		for _, instance := range instances {
			took, err := instance.terminate()
			if err != nil || took > ephemeral.Patience(10*time.Second) {
				p.broke("an instance ended after %v: %v, want exit status 0 within 10 s: %s", took, err, instance.said(0))
			}
			slowest = max(slowest, took)
			instance.start()
			instance.awaitRequests()
			_ = bar.Add(1)
		}
	}
	stop()
	p.counted("replacements", int64(rounds*len(instances)))
	p.counted("requests", c.requests.Load())
	p.counted("streams", c.streams.Load())
	p.counted("failed", c.failed.Load())
	p.lasted("slowest exit", slowest)
	assert.That(t, c.streams.Load() > 0, "no stream was read, so the test shows nothing")
}

// crowd is a set of clients that make calls without pauses, on connections that stay open.
type crowd struct {
	p      *promise
	url    string
	reader string // API token of a store, whose changes are streamed; "" for none
	secret string // that signs customers' tokens

	requests, streams, failed atomic.Int64
}

func (c *crowd) arrive(t *testing.T, n int, name string) (stop func()) {
	t.Helper()
	client := shopperAt(t, func() string { return c.url })
	client.secret = c.secret
	client.client.Transport = noRepeats{client.client.Transport, c}
	clients := newRegulars(t, client, n, name)
	awaitEveryCall(t, clients)
	shopping := browse(clients, func(call shopCall, _ time.Time, a reply) {
		c.requests.Add(1)
		if a.Status != http.StatusOK {
			c.fail("%v: %v", call, a)
		}
	})
	var stopped atomic.Bool
	var readers sync.WaitGroup
	for n := 0; n < 2 && c.reader != ""; n++ {
		readers.Go(func() {
			for ; !stopped.Load(); time.Sleep(10 * time.Millisecond) {
				c.stream(client)
			}
		})
	}
	return sync.OnceFunc(func() {
		stopped.Store(true)
		readers.Wait()
		shopping()
	})
}

func (c *crowd) fail(format string, arguments ...any) {
	if c.failed.Add(1) <= 20 {
		c.p.broke(format, arguments...)
	}
}

// stream reads all changes, which must end with a cursor.
func (c *crowd) stream(client *shopper) {
	c.requests.Add(1)
	r := client.send("GET", "/subscriptions/changes", "", "Authorization", "Bearer "+c.reader, "Accept", "application/x-ndjson")
	lines := strings.Split(strings.TrimSpace(string(r.Raw)), "\n")
	if r.Status != http.StatusOK || !strings.HasPrefix(lines[len(lines)-1], `{"next":`) {
		c.fail("stream: %v, %d lines up to %.200s", r.Err, len(lines), lines[len(lines)-1])
		return
	}
	c.streams.Add(1)
}

// noRepeats counts a request as failed if the transport had to repeat it on another connection.
// The transport repeats requests without a body.
type noRepeats struct {
	http.RoundTripper
	crowd *crowd
}

func (n noRepeats) RoundTrip(request *http.Request) (*http.Response, error) {
	var connections atomic.Int64
	ctx := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connections.Add(1) },
	})
	response, err := n.RoundTripper.RoundTrip(request.WithContext(ctx))
	if connections.Load() > 1 {
		n.crowd.fail("%s %s was sent on %d connections", request.Method, request.URL.Path, connections.Load())
	}
	return response, err
}
