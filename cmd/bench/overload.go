package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"commerce/cmd/bench/results"
)

const (
	// patience is how long a client waits for an answer. A later one is worthless to it.
	patience = time.Second

	// crowd is how many connections an overload has for each one of the peak. They are as
	// many as needed to keep the rate, even if every answer takes long.
	crowd = 24
)

// benchOverload measures goodput, the successful answers per second, while more requests come
// than the service can answer. It compares it to the peak, which is the throughput of as many
// clients as the service can serve.
func benchOverload(ctx context.Context, s *stage) (results.Benchmark, error) {
	shop, lines, err := openSlowedShop(ctx, s)
	if err != nil {
		return results.Benchmark{}, err
	}
	all := []overload{
		{name: "GET /cart with 50 lines, on one CPU", clients: shop.largeCarts, times: 1.5, least: 0.7, pinned: true},
		{name: "PATCH /cart/items, Redis 50 ms away", clients: shop.patches, times: 5, least: 0.8, slow: lines.redis, delay: 50 * time.Millisecond},
		{name: "GET /subscriptions, Postgres 50 ms away", clients: shop.lists, times: 5, least: 0.8, slow: lines.postgres, delay: 50 * time.Millisecond},
	}
	bar := progress("overload", len(all))
	var values []results.Value
	for _, o := range all {
		measured, err := o.run(ctx, s, shop)
		if err != nil {
			return results.Benchmark{}, fmt.Errorf("%s: %w", o.name, err)
		}
		values = append(values, measured...)
		_ = bar.Add(1)
	}
	return results.Benchmark{Name: "overload", Values: values}, nil
}

// lines are the proxies between the service and its servers.
type lines struct{ redis, postgres *toxiproxy.Proxy }

// slowedShop is a shop that can be slowed down.
type slowedShop struct {
	*shop
	few, many []http.Header // guests by the size of their carts
	merchant  http.Header
}

// openSlowedShop starts a service without rate limits behind proxies.
func openSlowedShop(ctx context.Context, s *stage) (*slowedShop, lines, error) {
	var all lines
	redis, err := s.redis(ctx)
	if err != nil {
		return nil, all, err
	}
	if all.redis, err = s.proxy("redis", strings.TrimPrefix(redis.url, "redis://")); err != nil {
		return nil, all, err
	}
	server, err := url.Parse(s.postgres)
	if err != nil {
		return nil, all, err
	}
	if all.postgres, err = s.proxy("postgres", server.Host); err != nil {
		return nil, all, err
	}
	opened, err := openShopVia(ctx, s, s.binary, func(u *url.URL) { u.Host = all.postgres.Listen },
		"REDIS_URL=redis://"+all.redis.Listen, "RATE_LIMIT=off")
	if err != nil {
		return nil, all, err
	}
	shop := &slowedShop{shop: opened}
	token, err := call(ctx, s.binary, opened.settings, "token", "store", "--store", "1", "--name", "bench")
	if err != nil {
		return nil, all, err
	}
	shop.merchant = http.Header{"Authorization": {"Bearer " + token}}
	if shop.few, err = shop.newGuests(ctx, fewLines); err == nil {
		shop.many, err = shop.newGuests(ctx, manyLines)
	}
	return shop, all, err
}

// newGuests returns some guests, whose carts several clients share.
func (s *slowedShop) newGuests(ctx context.Context, lines int) (all []http.Header, err error) {
	for range 8 {
		guest, err := s.newGuest(ctx, lines)
		if err != nil {
			return nil, err
		}
		all = append(all, guest)
	}
	return all, nil
}

// proxy starts a proxy to an address.
func (s *stage) proxy(name, to string) (*toxiproxy.Proxy, error) {
	line := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), name, "127.0.0.1:0", to)
	if err := line.Start(); err != nil {
		return nil, err
	}
	s.ends = append(s.ends, func() error { line.Stop(); return nil })
	return line, nil
}

// largeCarts returns clients that read carts. Their requests take the service much longer than
// the clients, so that the clients can send more than it can answer.
func (s *slowedShop) largeCarts() clients {
	var n atomic.Int64
	return func(ctx context.Context) (*client, error) {
		return same(s.server.url+"/cart", s.many[int(n.Add(1))%len(s.many)])(ctx)
	}
}

// patches returns clients that set the quantity of a line of the guests' carts.
func (s *slowedShop) patches() clients {
	var n atomic.Int64
	return func(context.Context) (*client, error) {
		header := s.few[int(n.Add(1))%len(s.few)].Clone()
		header.Set("Content-Type", "application/json")
		r, err := newRequest(http.MethodPatch, s.server.url+"/cart/items/"+strconv.Itoa(firstProduct), header)
		c := &client{request: r, prepare: func(context.Context) error {
			setBody(r, []byte(`{"quantity":2}`))
			return nil
		}}
		return c, err
	}
}

// lists returns clients that list the subscriptions of one store.
func (s *slowedShop) lists() clients { return same(s.server.url+"/subscriptions", s.merchant) }

// overload is one kind of overload.
type overload struct {
	name    string
	clients func() clients
	times   float64 // offered load, compared to the peak
	least   float64 // target of the goodput, compared to the peak
	pinned  bool    // the service has one CPU, and everything else another one

	slow  *toxiproxy.Proxy // nil: no server is slow
	delay time.Duration    // that it adds to each answer
}

func (o overload) run(ctx context.Context, s *stage, shop *slowedShop) ([]results.Value, error) {
	if o.pinned {
		undo, err := pinService(ctx, shop.server.pid())
		if err != nil {
			return nil, err
		}
		defer undo()
	}
	all, err := newClients(ctx, s.connections*crowd, o.clients())
	if err != nil {
		return nil, err
	}
	if o.slow != nil {
		toxic := fmt.Sprintf(`{"name":"slow","type":"latency","attributes":{"latency":%d}}`, o.delay.Milliseconds())
		if _, err := o.slow.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return nil, err
		}
		defer func() { _ = o.slow.Toxics.RemoveToxic(context.WithoutCancel(ctx), "slow") }()
	}
	transport := newTransport(len(all))
	defer transport.CloseIdleConnections()
	peak, err := o.peak(ctx, s, transport, all)
	if err != nil {
		return nil, err
	}
	if _, err := put(ctx, transport, all, s.turn); err != nil { // opens the connections
		return nil, err
	}
	seen, err := goodput(ctx, transport, all, o.times*peak, 4*s.turn)
	if err != nil {
		return nil, err
	}
	rate := float64(seen.requests) / (4 * s.turn).Seconds()
	return []results.Value{
		{Name: o.name + ": peak", Unit: "requests/s", Figure: results.FigureOf(results.Rounded(peak))},
		{Name: fmt.Sprintf("%s: goodput at %g × the peak", o.name, o.times), Unit: "of the peak", Figure: results.FigureOf(results.Rounded(rate / peak)), AtLeast: &o.least},
		{Name: o.name + ": p99 of the successful answers", Unit: "ms", Figure: results.FigureOf(milliseconds(percentile(seen.times, 0.99)))},
	}, nil
}

// peak is the highest throughput of some of the clients.
func (o overload) peak(ctx context.Context, s *stage, transport *http.Transport, all []*client) (float64, error) {
	highest := 0.0
	for _, n := range []int{s.connections / 2, s.connections, 8 * s.connections} {
		l, err := put(ctx, transport, all[:max(n, 1)], s.turn)
		if err != nil {
			return 0, err
		}
		highest = max(highest, float64(l.requests)/l.took.Seconds())
	}
	return highest, nil
}

// goodput sends requests at a constant rate, like arrive. It counts only answers that come
// while their clients wait for them.
func goodput(ctx context.Context, transport *http.Transport, all []*client, rate float64, d time.Duration) (load, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	due := make(chan time.Time, int(rate*d.Seconds())+1)
	wait := together(all, cancel, func(c *client) (load, error) { return c.answerInTime(ctx, transport, due) })
	tick(ctx, due, rate, d)
	sum, err := wait()
	slices.Sort(sum.times)
	return sum, err
}

// answerInTime sends one request for each arrival. If all clients are busy for long, arrivals
// that nobody waits for anymore are not sent.
func (c *client) answerInTime(ctx context.Context, transport *http.Transport, due <-chan time.Time) (load, error) {
	var l load
	for at := range due {
		if ctx.Err() != nil {
			return l, nil
		}
		if time.Since(at) > patience {
			l.failed++
			continue
		}
		if err := c.next(ctx); err != nil {
			return l, err
		}
		good, err := c.send(transport)
		if err != nil {
			return l, err
		}
		took := time.Since(at)
		if !good || took > patience {
			l.failed++
			continue
		}
		l.requests++
		l.times = append(l.times, took)
	}
	return l, nil
}

// pinService gives the service the first CPU, and this process, with its proxies, the others.
// Redis stays where the scheduler puts it. undo lets both use all CPUs again.
func pinService(ctx context.Context, pid int) (undo func(), err error) {
	if runtime.NumCPU() < 2 {
		return func() {}, nil
	}
	others := fmt.Sprintf("1-%d", runtime.NumCPU()-1)
	undo = func() {
		every := fmt.Sprintf("0-%d", runtime.NumCPU()-1)
		_ = pin(context.WithoutCancel(ctx), every, pid)
		_ = pin(context.WithoutCancel(ctx), every, os.Getpid())
	}
	if err := pin(ctx, "0", pid); err != nil {
		return nil, err
	}
	return undo, pin(ctx, others, os.Getpid())
}

// pin limits all threads of a process to some CPUs.
func pin(ctx context.Context, cpus string, pid int) error {
	out, err := exec.CommandContext(ctx, "taskset", "-acp", cpus, strconv.Itoa(pid)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("taskset: %w: %s", err, out)
	}
	return nil
}
