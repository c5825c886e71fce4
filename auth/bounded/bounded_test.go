package bounded_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"commerce/auth/bounded"
	"commerce/deploy/assert"
)

func TestCache_EvictsTheOldestThatWasNotUsed(t *testing.T) {
	t.Parallel()
	c := bounded.New[int, string](4, nil)
	for key := range 4 {
		c.Put(key, "")
	}
	c.Get(0)
	c.Peek(1)
	c.Put(2, "replaced")
	c.GetOrPut(3, nil)
	for i, want := range [][]int{{0, 2, 3, 4}, {0, 3, 4, 5}, {3, 4, 5, 6}} { // the use of 0 saves it once
		c.Put(4+i, "")
		var got []int
		for key := range 10 {
			if _, ok := c.Peek(key); ok {
				got = append(got, key)
			}
		}
		assert.Equal(t, got, want, "keys")
	}
}

func TestGetOrPut_CreatesOneValueForAllCallers(t *testing.T) {
	t.Parallel()
	for range 100 {
		c := bounded.New[int, *int](1, nil)
		var created atomic.Int64
		got := make([]*int, 8)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { got[i] = c.GetOrPut(1, func() *int { created.Add(1); return new(int) }) })
		}
		all.Wait()
		n := created.Load()
		assert.Require(t, n == 1 && len(slices.Compact(got)) == 1, "%d values created, the callers got %v", n, got)
	}
}

// naive is a Cache, also of entries with weights, that copies its whole queue for each change.
type naive struct {
	limit int
	queue []item
}

type item struct {
	key, value int
	used       bool
}

func weigh(key, value int) uint32 { return uint32(key%3 + value) }

func (n *naive) find(key int) *item {
	for i := range n.queue {
		if n.queue[i].key == key {
			return &n.queue[i]
		}
	}
	return nil
}

func (n *naive) get(key int) (int, bool) {
	e := n.find(key)
	if e == nil {
		return 0, false
	}
	e.used = true
	return e.value, true
}

func (n *naive) put(key, value int) {
	if old := n.find(key); old != nil {
		old.value = value
		n.shrink(n.limit)
		return
	}
	n.shrink(n.limit - int(weigh(key, value)))
	if int(weigh(key, value)) <= n.limit {
		n.queue = append(n.queue, item{key: key, value: value})
	}
}

func (n *naive) shrink(limit int) {
	for len(n.queue) > 0 && n.weight() > limit {
		first := n.queue[0]
		n.queue = slices.Clone(n.queue[1:])
		if first.used {
			first.used = false
			n.queue = append(n.queue, first)
		}
	}
}

func (n *naive) weight() (sum int) {
	for _, e := range n.queue {
		sum += int(weigh(e.key, e.value))
	}
	return sum
}

func TestCache_IsLikeANaiveOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		c, n := bounded.New(uint64(limit), weigh), &naive{limit: limit}
		keys, values := rapid.IntRange(0, 9), rapid.IntRange(0, 5)
		t.Repeat(map[string]func(*rapid.T){
			"Get": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				want, held := n.get(key)
				if got, ok := c.Get(key); got != want || ok != held {
					t.Fatalf("%d, %t, want %d, %t", got, ok, want, held)
				}
			},
			"Put": func(t *rapid.T) {
				key, value := keys.Draw(t, "key"), values.Draw(t, "value")
				c.Put(key, value)
				n.put(key, value)
			},
			"GetOrPut": func(t *rapid.T) {
				key, value := keys.Draw(t, "key"), values.Draw(t, "value")
				want, held := n.get(key)
				if !held {
					want = value
					n.put(key, value)
				}
				if got := c.GetOrPut(key, func() int { return value }); got != want {
					t.Fatalf("%d, want %d", got, want)
				}
			},
			"": func(t *rapid.T) {
				if c.Len() != len(n.queue) {
					t.Fatalf("Len is %d, want %d", c.Len(), len(n.queue))
				}
				for _, e := range n.queue {
					if got, ok := c.Peek(e.key); !ok || got != e.value {
						t.Fatalf("key %d has %d, %t, want %d", e.key, got, ok, e.value)
					}
				}
			},
		})
	})
}
