package catalog_test

import (
	"sync"
	"testing"

	"commerce/cart"
	"commerce/cart/catalog"
	"commerce/deploy/assert"
)

func TestMemory_ChangesAProductWithoutLosingOtherChanges(t *testing.T) {
	t.Parallel()
	first := &cart.Product{ID: 1, Price: 100}
	m := catalog.NewMemory(map[int64][]*cart.Product{1: {first}})
	var running sync.WaitGroup
	for range 100 {
		running.Go(func() { m.Change(1, 1, func(p *cart.Product) { p.Price++ }) })
	}
	running.Wait()
	found := assert.Must(m.Products(t.Context(), 1, []int64{1}))(t)
	assert.That(t, found[1].Price == 200 && first.Price == 100,
		"the price is %d, want 200; of the product before %d, want 100", found[1].Price, first.Price)
	for _, of := range []struct{ store, id int64 }{{1, 2}, {2, 1}} {
		assert.That(t, m.Change(of.store, of.id, func(*cart.Product) { t.Error("changed") }) == nil,
			"store %d has product %d", of.store, of.id)
	}
}
