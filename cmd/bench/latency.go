package main

import (
	"context"
	"fmt"
	"strings"

	"commerce/cmd/bench/results"
)

// benchLatency measures how long a read and an add take at constant rates of arrival, which are shares
// of the service's highest throughput, in the same rounds as those of their floors.
func benchLatency(ctx context.Context, s *stage) (results.Benchmark, error) {
	opened, err := openShop(ctx, s, opening{binary: s.binary})
	if err != nil {
		return results.Benchmark{}, err
	}
	var cases []testCase
	for _, call := range []struct {
		name, floor string
		clients     clients
		atMost      float64 // p99, × that of the floor, at a share of 0.6
		shares      []float64
	}{
		{"GET /cart", "floor-get", reading("/cart", fewLines, (*shop).newGuest)(opened), 1.5, []float64{0.1, 0.3, 0.6, 0.75, 0.9}},
		{"POST /cart/add", "floor-add", adding(plain)(opened), 1, []float64{0.6}},
	} {
		floor, err := openFloor(ctx, s, call.floor, opened)
		if err != nil {
			return results.Benchmark{}, err
		}
		own := testCase{name: call.name, server: opened.server, clients: call.clients}
		closed, err := measure(ctx, s.options, own)
		if err != nil {
			return closed, err
		}
		for _, share := range call.shares {
			least, most := floor, own
			for _, c := range []*testCase{&least, &most} {
				c.rate = share * closed.Cases[0].Rate()
				c.name += fmt.Sprintf(", %.0f %% of the highest rate", share*100)
			}
			most.compared = []comparison{{of: least.name, cost: p99()}}
			if share == 0.6 {
				most.compared[0].atMost = call.atMost
			}
			cases = append(cases, least, most)
		}
	}
	return measure(ctx, s.options, cases...)
}

// outageRate is the number of requests per second. It is low, so that the latency does not
// show how busy the machine is.
const outageRate = 200

// benchOutage measures how long calls of a cart take while the connections to Postgres are
// frozen: they stay open, and nothing passes. It compares them, in the same rounds, to calls of
// another instance whose Postgres answers.
func benchOutage(ctx context.Context, s *stage) (results.Benchmark, error) {
	line, err := s.toPostgres()
	if err != nil {
		return results.Benchmark{}, err
	}
	up, err := openShop(ctx, s, opening{binary: s.binary})
	if err != nil {
		return results.Benchmark{}, err
	}
	down, err := openShop(ctx, s, opening{binary: s.binary, postgres: line.Listen})
	if err != nil {
		return results.Benchmark{}, err
	}
	var cases []testCase
	for _, call := range []struct {
		name    string
		clients func(*shop) clients
	}{{"GET /cart", reading("/cart", fewLines, (*shop).newGuest)}, {"POST /cart/add", adding(plain)}} {
		usual := testCase{name: call.name, server: up.server, clients: call.clients(up), rate: outageRate}
		frozen := testCase{name: call.name + ", Postgres is frozen", server: down.server, clients: call.clients(down), rate: outageRate}
		frozen.compared = []comparison{{of: call.name, cost: p50(), atMost: 1.1}, {of: call.name, cost: p99(), atMost: 1.25}}
		cases = append(cases, usual, frozen)
		if _, err := frozen.turn(ctx, s.options); err != nil { // lets the instance read what it needs
			return results.Benchmark{}, err
		}
	}
	for _, direction := range []string{"upstream", "downstream"} {
		toxic := fmt.Sprintf(`{"type":"timeout","stream":%q,"attributes":{"timeout":0}}`, direction)
		if _, err := line.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return results.Benchmark{}, err
		}
	}
	return measure(ctx, s.options, cases...)
}
