package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"commerce/cmd/bench/results"
)

// outageRate is the number of requests per second. It is low, so that the latency does not
// show how busy the machine is.
const outageRate = 200

// benchOutage measures how long calls of a cart take while Postgres does not answer, in the
// same rounds as those of another service whose Postgres answers.
func benchOutage(ctx context.Context, s *stage) (results.Benchmark, error) {
	up, err := openShop(ctx, s, s.binary)
	if err != nil {
		return results.Benchmark{}, err
	}
	down, freeze, err := openCutOffShop(ctx, s)
	if err != nil {
		return results.Benchmark{}, err
	}
	o := outage{latency: latency{options: s.options}, up: up, down: down}
	if err := o.warmUp(ctx); err != nil {
		return results.Benchmark{}, err
	}
	if err := freeze(); err != nil {
		return results.Benchmark{}, err
	}
	values, err := o.measure(ctx)
	return results.Benchmark{Name: "outage", Store: "Redis", Values: values}, err
}

// openCutOffShop starts a service whose connections to Postgres can be frozen: they stay
// open, and nothing passes.
func openCutOffShop(ctx context.Context, s *stage) (opened *shop, freeze func() error, err error) {
	server, err := url.Parse(s.postgres)
	if err != nil {
		return nil, nil, err
	}
	line, err := s.proxy("postgres", server.Host)
	if err != nil {
		return nil, nil, err
	}
	freeze = func() error {
		for _, direction := range []string{"upstream", "downstream"} {
			toxic := fmt.Sprintf(`{"type":"timeout","stream":%q,"attributes":{"timeout":0}}`, direction)
			if _, err := line.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
				return err
			}
		}
		return nil
	}
	opened, err = openShopVia(ctx, s, s.binary, func(u *url.URL) { u.Host = line.Listen })
	return opened, freeze, err
}

// outage compares two services.
type outage struct {
	latency
	up, down *shop
}

// outageCall is a call to compare.
type outageCall struct {
	name    string
	clients func(*shop) clients
}

func outageCalls() []outageCall {
	return []outageCall{
		{"GET /cart", reading("/cart", fewLines, (*shop).newGuest)},
		{"POST /cart/add", adding(plain)},
	}
}

// warmUp lets both services read what their calls need from Postgres.
func (o outage) warmUp(ctx context.Context) error {
	for _, call := range outageCalls() {
		for _, s := range []*shop{o.up, o.down} {
			if _, err := o.turn(ctx, testCase{name: call.name, server: s.server, clients: call.clients(s)}, outageRate); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o outage) measure(ctx context.Context) ([]results.Value, error) {
	bar := progress("outage", o.rounds*len(outageCalls())*2)
	p50, p99, failed := map[string][]float64{}, map[string][]float64{}, 0
	for range o.rounds {
		for _, call := range outageCalls() {
			var took [2]percentiles
			for i, s := range []*shop{o.up, o.down} {
				var err error
				took[i], err = o.turn(ctx, testCase{name: call.name, server: s.server, clients: call.clients(s)}, outageRate)
				if err = errors.Join(err, ctx.Err()); err != nil {
					return nil, fmt.Errorf("%s: %w", call.name, err)
				}
				_ = bar.Add(1)
			}
			p50[call.name] = append(p50[call.name], took[1].p50/took[0].p50)
			p99[call.name] = append(p99[call.name], took[1].p99/took[0].p99)
			failed += took[1].failed
		}
	}
	var all []results.Value
	for _, call := range outageCalls() {
		all = append(all,
			results.Value{Name: "p50 of " + call.name + " while Postgres is frozen", Unit: "of the p50 with Postgres", Figure: results.FigureOf(p50[call.name]...), AtMost: new(1.1)},
			results.Value{Name: "p99 of " + call.name + " while Postgres is frozen", Unit: "of the p99 with Postgres", Figure: results.FigureOf(p99[call.name]...), AtMost: new(1.25)})
	}
	return append(all, results.Value{Name: "failed requests while Postgres is frozen", Figure: results.FigureOf(float64(failed))}), nil
}
