package torture

import (
	"fmt"
	"io"
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
	program := commerce.compiled(t)
	command(t, program, []string{"DATABASE_URL=" + database}, "migrate", "up") // so that changes can be read in this copy of a database
	settings := []string{"REDIS_URL=" + redis.URL, "DATABASE_URL=" + database, "TRUSTED_PROXIES=127.0.0.1"}
	instances := []*service{startService(t, settings...), startService(t, settings...)}
	url := startHAProxy(t, instances[0], instances[1])

	c := &crowd{p: p, url: url}
	c.reader = command(t, program, []string{"DATABASE_URL=" + database}, "token", "store", "--store", "1", "--name", "torture")
	stop := c.arrive(t, sized(8, 32))
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
			awaitRequests(t, instance)
			_ = bar.Add(1)
		}
	}
	stop()
	p.counted("replacements", int64(rounds*len(instances)))
	p.counted("requests", c.requests.Load())
	p.counted("streams", c.streams.Load())
	p.counted("failed", c.failed.Load())
	p.lasted("slowest exit", slowest)
	if c.streams.Load() == 0 {
		p.broke("no stream was read")
	}
}

func awaitRequests(t *testing.T, s *service) {
	t.Helper()
	for began := time.Now(); s.served() == 0; time.Sleep(20 * time.Millisecond) {
		assert.Require(t, time.Since(began) <= startLimit, "haproxy sends nothing to a new instance for %v", startLimit)
	}
}

// crowd is a set of clients that make calls without pauses, on connections that stay open.
type crowd struct {
	p      *promise
	url    string
	reader string // API token of a store

	requests, streams, failed atomic.Int64
}

func (c *crowd) arrive(t *testing.T, n int) (stop func()) {
	t.Helper()
	client := shopperAt(t, func() string { return c.url })
	client.client.Transport = noRepeats{client.client.Transport, c}
	var clients []*regular
	for i := range n {
		clients = append(clients, newRegular(t, client, fmt.Sprint("regular-", i)))
	}
	awaitEveryCall(t, clients)
	shopping := browse(clients, func(call shopCall, _ time.Time, a reply) {
		c.requests.Add(1)
		if a.Status != http.StatusOK {
			c.fail("%v: %v", call, a)
		}
	})
	var stopped atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !stopped.Load() {
				c.stream(client.client)
				time.Sleep(10 * time.Millisecond)
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

func (c *crowd) stream(client *http.Client) {
	request, err := http.NewRequest("GET", c.url+"/subscriptions/changes", nil)
	if err != nil {
		c.fail("%v", err)
		return
	}
	request.Header.Set("Authorization", "Bearer "+c.reader)
	request.Header.Set("Accept", "application/x-ndjson")
	c.requests.Add(1)
	response, err := client.Do(request)
	if err != nil {
		c.fail("stream: %v", err)
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(lines[len(lines)-1], `{"next":`) {
		c.fail("stream: %d, %v, %d lines up to %.200s", response.StatusCode, err, len(lines), lines[len(lines)-1])
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
