package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

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
	_, answer, err := cart.read.send(ctx, p.url)
	if err != nil {
		return 0, 0, err
	}
	quantities, err := cart.quantities(answer)
	kept := -fewLines
	for _, q := range quantities {
		kept += q
	}
	return 2*pairs - int(accepted.Load()), int(accepted.Load()) - kept, err
}
