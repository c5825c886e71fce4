package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"commerce/cmd/bench/results"
)

// peer is a cart that a team may run: the service, or something else.
type peer struct {
	*server
	name    string
	start   func(context.Context) (*process, error) // starts another process of it
	newCart func(context.Context) (guestCart, error)

	mu    sync.Mutex
	added []*addedCart // by all turns
}

// thisService is the name of the service among its peers.
const thisService = "this service"

// openers start the peers.
func openers() []func(context.Context, *stage) (*peer, error) {
	return []func(context.Context, *stage) (*peer, error){openServicePeer, openSmall, openVendure, openMedusa}
}

// benchPeers compares the service with other carts: a read of a guest's cart of five lines, an
// add that increases a quantity in it, and a start.
func benchPeers(ctx context.Context, s *stage) (results.Benchmark, error) {
	var peers []*peer
	for _, open := range openers() {
		p, err := open(ctx, s)
		if err != nil {
			return results.Benchmark{}, err
		}
		peers = append(peers, p)
	}
	return measurePeers(ctx, s.options, peers)
}

func measurePeers(ctx context.Context, o options, peers []*peer) (results.Benchmark, error) {
	var cases []testCase
	for _, kind := range []struct {
		name    string
		clients func(*peer) clients
	}{{"read", (*peer).reading}, {"add", (*peer).adding}} {
		for _, p := range peers {
			c := testCase{name: kind.name + ": " + p.name, server: p.server, clients: kind.clients(p)}
			if p.name != thisService {
				c.compared = []results.Comparison{{Cost: results.CPU, Of: kind.name + ": " + thisService}}
			}
			cases = append(cases, c)
		}
	}
	b, err := measure(ctx, o, "peers", "stores'", cases)
	if err != nil {
		return b, err
	}
	for _, p := range peers {
		if err := p.checkAdded(ctx); err != nil {
			return b, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if b.Values, err = starts(ctx, o.rounds, peers); err != nil {
		return b, err
	}
	for _, p := range peers {
		values, err := p.ofOneCart(ctx, o.rounds)
		if err != nil {
			return b, fmt.Errorf("%s: %w", p.name, err)
		}
		b.Values = append(b.Values, values...)
	}
	return b, nil
}

// Names of values, which the name of the peer follows.
const (
	startTime   = "start to first answer: "
	startMemory = "resident memory after the start: "
	readSize    = "answer to a read: "
	refusedAdds = "refused of 40 adds, two at a time: "
	lostAdds    = "lost of 40 adds, two at a time: "
)

// ofOneCart returns the size of an answer, and what happens to adds in pairs.
func (p *peer) ofOneCart(ctx context.Context, rounds int) ([]results.Value, error) {
	cart, err := p.filled(ctx)
	if err != nil {
		return nil, err
	}
	_, answer, err := cart.read.send(ctx, p.url)
	if err != nil {
		return nil, err
	}
	var refused, lost []float64
	for range rounds {
		r, l, err := p.inPairs(ctx, 20)
		if err != nil {
			return nil, err
		}
		refused, lost = append(refused, float64(r)), append(lost, float64(l))
	}
	return []results.Value{
		{Name: readSize + p.name, Unit: "bytes", Figure: results.FigureOf(float64(len(answer)))},
		{Name: refusedAdds + p.name, Unit: "adds", Figure: results.FigureOf(refused...)},
		{Name: lostAdds + p.name, Unit: "adds", Figure: results.FigureOf(lost...)},
	}, nil
}

// stores returns the process ids of a Redis server and of the sessions of a database; an empty
// URL means none.
func stores(redis *process, database string) func(context.Context) ([]int, error) {
	return func(ctx context.Context) ([]int, error) {
		var pids []int
		if redis != nil {
			pids = append(pids, redis.pid())
		}
		if database == "" {
			return pids, nil
		}
		db, err := pgx.Connect(ctx, database)
		if err != nil {
			return nil, err
		}
		defer db.Close(ctx)
		rows, err := db.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		if err != nil {
			return nil, err
		}
		sessions, err := pgx.CollectRows(rows, pgx.RowTo[int])
		return append(pids, sessions...), err
	}
}
