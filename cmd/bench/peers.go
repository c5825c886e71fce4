package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"commerce/cmd/bench/results"
)

// peer is a cart that a team may run: the service, or something else.
type peer struct {
	*server
	name    string
	start   func(context.Context) (*process, error) // starts another process of it
	newCart func(ctx context.Context, url string) (guestCart, error)

	mu    sync.Mutex
	added []*addedCart // by all turns
}

// guestCart makes the requests of a guest. Its products have the numbers 0 to 4.
type guestCart struct {
	read  message
	add   func(product int) message
	lines func(answer []byte) ([]line, error) // in the answer to read
}

// line is a line of the cart of any peer.
type line struct{ Quantity int }

// linesAt decodes an answer into a value of type T, and returns the lines in it.
func linesAt[T any](lines func(*T) []line) func([]byte) ([]line, error) {
	return func(answer []byte) ([]line, error) {
		var cart T
		err := json.Unmarshal(answer, &cart)
		return lines(&cart), err
	}
}

// thisService is the name of the service among its peers.
const thisService = "this service"

// openers start the peers.
func openers() []func(context.Context, *stage) (*peer, error) {
	return []func(context.Context, *stage) (*peer, error){openService, small().open, vendure().open, medusa().open}
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
	}{{"read: ", (*peer).reading}, {"add: ", (*peer).adding}} {
		for _, p := range peers {
			c := testCase{name: kind.name + p.name, server: p.server, clients: kind.clients(p)}
			if p.name != thisService {
				c.compared = cpuOf(kind.name+thisService, 0)
			}
			cases = append(cases, c)
		}
	}
	b, err := measure(ctx, o, cases...)
	if err != nil {
		return b, err
	}
	rounds := make([][][]float64, len(peers)) // by peer: the values of each round
	err = inRounds(ctx, o, len(peers), func(i int) error {
		values, err := peers[i].values(ctx)
		rounds[i] = append(rounds[i], values)
		return err
	})
	if err != nil {
		return b, err
	}
	for i, p := range peers {
		for v, of := range [][2]string{{"start to first answer", "s"}, {"resident memory after the start", "MB"}, {"answer to a read", "bytes"}, {"refused of 40 adds, two at a time", "adds"}, {"lost of 40 adds, two at a time", "adds"}} {
			var values []float64
			for _, round := range rounds[i] {
				values = append(values, round[v])
			}
			b.Values = append(b.Values, results.Value{Name: of[0] + ": " + p.name, Unit: of[1], Figure: results.FigureOf(values...)})
		}
		for _, cart := range p.added { // every add of all turns must be in its cart
			if _, err := cart.check(ctx, p.url); err != nil {
				return b, fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return b, nil
}

// values returns what one round says of a peer: the time from the start of another process until
// it shows a cart and its resident memory then, the size of an answer, and what happens to adds
// in pairs.
func (p *peer) values(ctx context.Context) ([]float64, error) {
	cart, err := p.filled(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	another, err := p.start(ctx)
	if err != nil {
		return nil, fmt.Errorf("start of %s: %w", p.name, err)
	}
	defer another.stop()
	if _, err := cart.check(ctx, another.url); err != nil {
		return nil, err
	}
	took := results.Rounded(time.Since(began).Seconds())
	size, _, err := resident(another.pid())
	if err != nil {
		return nil, err
	}
	answer, err := cart.check(ctx, p.url)
	if err != nil {
		return nil, err
	}
	refused, lost, err := p.inPairs(ctx, 20)
	return []float64{took, megabytes(size), float64(len(answer)), float64(refused), float64(lost)}, err
}

// addedCart is a cart with the number of units that its client has added.
type addedCart struct {
	guestCart
	units int
}

// filled returns a cart with one unit of each of five products.
func (p *peer) filled(ctx context.Context) (*addedCart, error) {
	cart, err := p.newCart(ctx, p.url)
	if err != nil {
		return nil, err
	}
	for i := range fewLines {
		if _, _, err := cart.add(i).send(ctx, p.url); err != nil {
			return nil, err
		}
	}
	filled := &addedCart{cart, fewLines}
	_, err = filled.check(ctx, p.url)
	return filled, err
}

// kept reads the cart, and returns how many lines and units it has.
func (c *addedCart) kept(ctx context.Context, url string) (lines, units int, answer []byte, err error) {
	if _, answer, err = c.read.send(ctx, url); err != nil {
		return 0, 0, nil, err
	}
	all, err := c.lines(answer)
	for _, l := range all {
		units += l.Quantity
	}
	return len(all), units, answer, err
}

// check fails unless the cart has five lines and all units that were added. A GraphQL server
// answers a refusal with 200 too.
func (c *addedCart) check(ctx context.Context, url string) (answer []byte, err error) {
	lines, units, answer, err := c.kept(ctx, url)
	if err == nil && (lines != fewLines || units != c.units) {
		err = fmt.Errorf("a cart has %d lines with %d units, not %d with %d", lines, units, fewLines, c.units)
	}
	return answer, err
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

// inPairs adds units of one product to a new cart, always two at the same time, like a double
// click. It returns how many adds were refused, and how many were accepted but are not in the cart.
func (p *peer) inPairs(ctx context.Context, pairs int) (refused, lost int, err error) {
	cart, err := p.filled(ctx)
	if err != nil {
		return 0, 0, err
	}
	var accepted atomic.Int64
	for range pairs {
		var pair sync.WaitGroup
		for range 2 {
			pair.Go(func() {
				if _, _, err := cart.add(0).send(ctx, p.url); err == nil {
					accepted.Add(1)
				}
			})
		}
		pair.Wait()
	}
	_, units, _, err := cart.kept(ctx, p.url)
	return 2*pairs - int(accepted.Load()), int(accepted.Load()) - (units - fewLines), err
}
