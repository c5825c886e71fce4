package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"

	"commerce/cmd/bench/results"
)

const (
	// patience is how long a client waits for an answer. A later one is worthless to it.
	patience = time.Second

	// perConnection is how many connections an overload has for each one of the peak. They are
	// as many as needed to keep the rate, even if every answer takes long.
	perConnection = 24
)

// overload is one kind of overload.
type overload struct {
	name    string
	clients clients
	times   float64          // offered load, compared to the peak
	least   float64          // target of the goodput, compared to the peak
	slow    *toxiproxy.Proxy // to a server that is 50 ms away; nil: the service has only one CPU
}

// benchOverload measures goodput, the successful answers per second, while more requests come
// than the service can answer. It compares it to the peak, which is the throughput of as many
// clients as the service can serve.
func benchOverload(ctx context.Context, s *stage) (results.Benchmark, error) {
	postgres, err := s.toPostgres()
	if err != nil {
		return results.Benchmark{}, err
	}
	near, err := s.redis(ctx, "redis-server")
	if err != nil {
		return results.Benchmark{}, err
	}
	redis, err := s.proxy("redis", strings.TrimPrefix(near.url, "redis://"))
	if err != nil {
		return results.Benchmark{}, err
	}
	shop, err := openShop(ctx, s, opening{binary: s.binary, redis: redis.Listen, postgres: postgres.Listen, settings: []string{"RATE_LIMIT=off"}})
	if err != nil {
		return results.Benchmark{}, err
	}
	guest, err := shop.newGuest(ctx, manyLines) // whose cart all clients share
	if err != nil {
		return results.Benchmark{}, err
	}
	var b results.Benchmark
	for _, o := range []overload{
		{"GET /cart with 50 lines, on one CPU", same(shop.url+"/cart", guest), 1.5, 0.7, nil},
		{"PATCH /cart/items, Redis 50 ms away", patchingOne(manyLines)(shop), 2, 0.7, redis},
		{"GET /subscriptions, Postgres 50 ms away", same(shop.url+"/subscriptions", shop.merchant), 5, 0.8, postgres},
	} {
		cases, err := o.run(ctx, s.options, shop)
		if err != nil {
			return b, err
		}
		b.Cases = append(b.Cases, cases...)
	}
	return b, nil
}

// toPostgres starts a proxy to the Postgres server.
func (s *stage) toPostgres() (*toxiproxy.Proxy, error) {
	server, err := url.Parse(s.postgres)
	if err != nil {
		return nil, err
	}
	return s.proxy("postgres", server.Host)
}

// run measures closed loops of few, of as many as usual and of many clients, and then more
// requests than the fastest of them.
func (o overload) run(ctx context.Context, options options, shop *shop) ([]results.Case, error) {
	undo, err := o.hamper(ctx, shop.pid())
	defer undo()
	if err != nil {
		return nil, err
	}
	var loops []testCase
	for _, n := range []int{max(options.connections/2, 1), options.connections, 8 * options.connections} {
		loops = append(loops, testCase{name: fmt.Sprintf("%s, %d clients", o.name, n), server: shop.server, clients: o.clients, connections: n, patience: patience})
	}
	closed, err := measure(ctx, options, loops...)
	if err != nil {
		return nil, err
	}
	peak := slices.MaxFunc(closed.Cases, func(a, b results.Case) int { return cmp.Compare(a.Rate(), b.Rate()) })
	highest := peak.Rate()
	over := testCase{
		name: fmt.Sprintf("%s, %g × %.0f requests/s", o.name, o.times, highest), server: shop.server, clients: o.clients,
		connections: perConnection * options.connections, rate: o.times * highest, patience: patience,
	}
	offered, err := measure(ctx, options, over)
	if err != nil {
		return nil, err
	}
	goodput := comparison{of: peak.Name, cost: cost{"goodput", func(r results.Round) float64 { return r.Rate }}}.ratio(offered.Cases[0], peak)
	goodput.AtLeast = o.least
	offered.Cases[0].Ratios = []results.Value{goodput}
	return append(closed.Cases, offered.Cases...), nil
}

// hamper slows down a server of the service, or gives the service the first CPU, and this process
// the others. undo ends it.
func (o overload) hamper(ctx context.Context, pid int) (undo func(), err error) {
	if o.slow != nil {
		_, err := o.slow.Toxics.AddToxicJson(strings.NewReader(`{"name":"slow","type":"latency","attributes":{"latency":50}}`))
		return func() { _ = o.slow.Toxics.RemoveToxic(context.WithoutCancel(ctx), "slow") }, err
	}
	last := runtime.NumCPU() - 1
	pin := func(service, clients string) error {
		_, err := call(context.WithoutCancel(ctx), "taskset", nil, "-acp", service, strconv.Itoa(pid))
		_, err2 := call(context.WithoutCancel(ctx), "taskset", nil, "-acp", clients, strconv.Itoa(os.Getpid()))
		return errors.Join(err, err2)
	}
	every := fmt.Sprintf("0-%d", last)
	return func() { _ = pin(every, every) }, pin("0", fmt.Sprintf("%d-%d", min(1, last), last))
}
