package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"

	"github.com/redis/go-redis/v9"

	"commerce/cmd/bench/results"
)

// benchMemory measures how many bytes of Redis a guest's cart takes: its keys, their
// values and Redis' own structures, as MEMORY USAGE counts them.
func benchMemory(ctx context.Context, s *stage) (results.Benchmark, error) {
	shops, err := openShops(ctx, s)
	if err != nil {
		return results.Benchmark{}, err
	}
	b := results.Benchmark{Name: "memory", Store: "Redis"}
	curve := results.Curve{Name: "memory", X: "lines", Y: "Redis memory of a cart (bytes)"}
	for _, shop := range shops {
		m := memory{shop}
		values, err := m.values(ctx)
		if err != nil {
			return b, err
		}
		series, err := m.series(ctx)
		if err != nil {
			return b, err
		}
		b.Values, curve.Series = append(b.Values, values...), append(curve.Series, series...)
	}
	b.Curves = []results.Curve{curve}
	return b, nil
}

// memory measures the carts of a shop, one at a time.
type memory struct{ *shop }

func (m memory) values(ctx context.Context) ([]results.Value, error) {
	var all []results.Value
	for _, c := range []struct {
		name    string
		mark    mark
		changes int
		atMost  float64
	}{
		{"5 lines", plain, fewLines, 240},
		{"5 lines, added by the published client", stamped, fewLines, 500},
		{"5 lines, 256 changes with an Idempotency-Key", keyed, 256, 20_480},
	} {
		size, err := m.after(ctx, c.mark, c.changes)
		if err != nil {
			return nil, err
		}
		all = append(all, results.Value{Name: c.name + m.label, Unit: "bytes", Figure: results.FigureOf(float64(size)), AtMost: &c.atMost})
		if c.name != "5 lines" {
			continue
		}
		large, err := m.outsideListpacks(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, results.Value{Name: c.name + ": keys that are not a listpack" + m.label, Figure: results.FigureOf(float64(large)), AtMost: new(0.0)})
	}
	return all, nil
}

// after returns the bytes of a new cart after changes of five lines.
func (m memory) after(ctx context.Context, mark mark, changes int) (int64, error) {
	guest, err := m.newCart(ctx)
	if err != nil {
		return 0, err
	}
	for n := range changes {
		if err := m.add(ctx, guest, mark, n, n%fewLines); err != nil {
			return 0, err
		}
	}
	return m.bytes(ctx)
}

// series measures a cart that grows by one line at a time.
func (m memory) series(ctx context.Context) ([]results.Series, error) {
	var all []results.Series
	for _, way := range []struct {
		name string
		mark mark
	}{{"plain adds", plain}, {"published client", stamped}} {
		guest, err := m.newCart(ctx)
		if err != nil {
			return nil, err
		}
		series := results.Series{Name: way.name + m.label}
		for n := range products {
			if err := m.add(ctx, guest, way.mark, n, n); err != nil {
				return nil, err
			}
			size, err := m.bytes(ctx)
			if err != nil {
				return nil, err
			}
			series.Points = append(series.Points, results.Point{X: float64(n + 1), Figure: results.FigureOf(float64(size))})
		}
		all = append(all, series)
	}
	return all, nil
}

// newCart deletes all carts and returns the headers of a guest without one.
func (m memory) newCart(ctx context.Context) (http.Header, error) {
	rdb, err := m.client()
	if err != nil {
		return nil, err
	}
	defer rdb.Close()
	guest := http.Header{"X-Public-Key": {"pk_demo"}, "X-Cart-Token": {rand.Text()}}
	return guest, rdb.FlushAll(ctx).Err()
}

// add is the nth change of a cart. It adds one unit of a product.
func (m memory) add(ctx context.Context, guest http.Header, mark mark, n, product int) error {
	header := guest.Clone()
	mark(header, guest.Get("X-Cart-Token"), n)
	_, err := m.call(ctx, http.MethodPost, "/cart/add", header, addition(product), nil)
	return err
}

// bytes returns the memory of all keys.
func (m memory) bytes(ctx context.Context) (int64, error) {
	var sum int64
	err := m.eachKey(ctx, func(rdb *redis.Client, key string) error {
		size, err := rdb.MemoryUsage(ctx, key, 0).Result()
		sum += size
		return err
	})
	return sum, err
}

// outsideListpacks returns how many keys Redis keeps in another way than as a listpack,
// which is its smallest.
func (m memory) outsideListpacks(ctx context.Context) (int, error) {
	n := 0
	err := m.eachKey(ctx, func(rdb *redis.Client, key string) error {
		encoding, err := rdb.ObjectEncoding(ctx, key).Result()
		if encoding != "listpack" {
			n++
		}
		return err
	})
	return n, err
}

// eachKey calls do for each key of the shop's Redis.
func (m memory) eachKey(ctx context.Context, do func(*redis.Client, string) error) error {
	rdb, err := m.client()
	if err != nil {
		return err
	}
	defer rdb.Close()
	keys, err := rdb.Keys(ctx, "*").Result()
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := do(rdb, key); err != nil {
			return fmt.Errorf("a key of a cart: %w", err)
		}
	}
	return nil
}

// client connects to the shop's Redis.
func (s *shop) client() (*redis.Client, error) {
	o, err := redis.ParseURL(s.redis.url)
	if err != nil {
		return nil, err
	}
	o.DisableIdentity = true
	return redis.NewClient(o), nil
}
