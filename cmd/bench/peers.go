package main

import (
	"context"
	"fmt"
	"sync"
	"time"

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

// guestCart makes the requests of a guest. Its products have the numbers 0 to 4.
type guestCart struct {
	read       message
	add        func(product int) message
	quantities func(answer []byte) ([]int, error) // of the lines, in the answer to read
}

// addedCart is a cart with the number of units that its client has added.
type addedCart struct {
	guestCart
	units int
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
		size, err := p.sizeOfRead(ctx)
		if err != nil {
			return b, err
		}
		b.Values = append(b.Values, results.Value{Name: "answer to a read: " + p.name, Unit: "bytes", Figure: results.FigureOf(float64(size))})
	}
	return b, nil
}

// sizeOfRead returns the size of the answer that shows a cart of five lines.
func (p *peer) sizeOfRead(ctx context.Context) (int, error) {
	cart, err := p.filled(ctx)
	if err != nil {
		return 0, err
	}
	_, answer, err := cart.read.send(ctx, p.url)
	return len(answer), err
}

// filled returns a cart with one unit of each of five products.
func (p *peer) filled(ctx context.Context) (*addedCart, error) {
	cart, err := p.newCart(ctx)
	if err != nil {
		return nil, err
	}
	for i := range fewLines {
		if _, _, err := cart.add(i).send(ctx, p.url); err != nil {
			return nil, err
		}
	}
	filled := &addedCart{cart, fewLines}
	return filled, filled.check(ctx, p.url)
}

// check fails unless the cart has five lines and all units that were added. A GraphQL server
// answers a refusal with 200 too.
func (c *addedCart) check(ctx context.Context, url string) error {
	_, answer, err := c.read.send(ctx, url)
	if err != nil {
		return err
	}
	quantities, err := c.quantities(answer)
	if err != nil {
		return err
	}
	units := 0
	for _, q := range quantities {
		units += q
	}
	if len(quantities) != fewLines || units != c.units {
		return fmt.Errorf("a cart has %d lines with %d units, not %d with %d", len(quantities), units, fewLines, c.units)
	}
	return nil
}

// reading returns clients that repeat a read, each of its own cart.
func (p *peer) reading() clients {
	return func(ctx context.Context) (*client, error) {
		cart, err := p.filled(ctx)
		if err != nil {
			return nil, err
		}
		c := &client{}
		c.prepare = func(context.Context) (err error) {
			c.request, err = cart.read.request(p.url)
			return err
		}
		return c, nil
	}
}

// unitsPerCart keeps a cart below the limits of all peers, 999 units at the lowest.
const unitsPerCart = 900

// adding returns clients that increase the quantities of their lines in turn. A client switches
// to a new cart before its cart is full.
func (p *peer) adding() clients {
	return func(ctx context.Context) (*client, error) {
		c := &client{}
		var cart *addedCart
		c.prepare = func(ctx context.Context) (err error) {
			if cart == nil || cart.units == unitsPerCart {
				if cart, err = p.filled(ctx); err != nil {
					return err
				}
				p.mu.Lock()
				p.added = append(p.added, cart)
				p.mu.Unlock()
			}
			c.request, err = cart.add(cart.units % fewLines).request(p.url)
			cart.units++
			return err
		}
		return c, nil
	}
}

// checkAdded fails unless every add of all turns is in its cart.
func (p *peer) checkAdded(ctx context.Context) error {
	for _, cart := range p.added {
		if err := cart.check(ctx, p.url); err != nil {
			return err
		}
	}
	return nil
}

// starts measures the time from the start of a process of each peer until it shows a cart.
func starts(ctx context.Context, rounds int, peers []*peer) ([]results.Value, error) {
	took, size := make([][]float64, len(peers)), make([][]float64, len(peers))
	for range rounds {
		for i, p := range peers {
			d, bytes, err := p.restart(ctx)
			if err != nil {
				return nil, fmt.Errorf("start of %s: %w", p.name, err)
			}
			took[i], size[i] = append(took[i], results.Rounded(d.Seconds())), append(size[i], megabytes(bytes))
		}
	}
	var all []results.Value
	for i, p := range peers {
		all = append(all,
			results.Value{Name: "start to first answer: " + p.name, Unit: "s", Figure: results.FigureOf(took[i]...)},
			results.Value{Name: "resident memory after the start: " + p.name, Unit: "MB", Figure: results.FigureOf(size[i]...)})
	}
	return all, nil
}

// restart starts another process of the peer, and returns how long it takes to show a cart and
// its resident memory then.
func (p *peer) restart(ctx context.Context) (time.Duration, int64, error) {
	cart, err := p.filled(ctx)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	another, err := p.start(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer another.stop()
	if err := cart.check(ctx, another.url); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	size, err := resident(another.pid())
	return took, size, err
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
