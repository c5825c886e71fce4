package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"commerce/cmd/bench/results"
)

// benchWrites measures how many bytes reads of a cart make Redis send to a replica. Redis
// writes the same bytes to its append-only file.
func benchWrites(ctx context.Context, s *stage) (results.Benchmark, error) {
	shops, err := openShops(ctx, s)
	if err != nil {
		return results.Benchmark{}, err
	}
	b := results.Benchmark{Name: "writes", Store: "Redis"}
	for _, shop := range shops {
		values, err := shop.writes(ctx, s)
		if err != nil {
			return b, err
		}
		b.Values = append(b.Values, values...)
	}
	return b, nil
}

func (s *shop) writes(ctx context.Context, stage *stage) ([]results.Value, error) {
	if err := s.openReplica(ctx, stage); err != nil {
		return nil, err
	}
	const reads = 1000
	var all []results.Value
	for _, c := range []struct {
		name, path string
		newShopper func(*shop, context.Context, int) (http.Header, error)
	}{
		{"GET /cart, guest", "/cart", (*shop).newGuest},
		{"GET /cart, customer", "/cart", (*shop).newCustomer},
		{"GET /cart/count, guest", "/cart/count", (*shop).newGuest},
	} {
		shopper, err := c.newShopper(s, ctx, fewLines)
		if err != nil {
			return nil, err
		}
		written, err := s.written(ctx, func() error {
			group, ctx := errgroup.WithContext(ctx)
			group.SetLimit(16)
			for range reads {
				group.Go(func() error {
					_, err := s.call(ctx, http.MethodGet, c.path, shopper, nil, nil)
					return err
				})
			}
			return group.Wait()
		})
		if err != nil {
			return nil, err
		}
		all = append(all, results.Value{
			Name: fmt.Sprintf("bytes replicated by %d reads, %s%s", reads, c.name, s.label), Unit: "bytes",
			Figure: results.FigureOf(float64(written)), AtMost: new(0.0),
		})
	}
	return all, nil
}

// openReplica starts a replica of the shop's Redis and waits until it is in sync.
func (s *shop) openReplica(ctx context.Context, stage *stage) error {
	u, err := url.Parse(s.redis.url)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return err
	}
	if _, err := stage.redis(ctx, "--replicaof", host, port); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		state, err := s.replication(ctx)
		if err != nil {
			return err
		}
		if strings.Contains(state, "state=online") {
			return nil
		}
		if time.Since(began) > 15*time.Second {
			return errors.New("the replica did not synchronize in time")
		}
	}
}

// written returns how many bytes Redis adds to its replication stream during do.
func (s *shop) written(ctx context.Context, do func() error) (int64, error) {
	before, err := s.offset(ctx)
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := s.offset(ctx)
	return after - before, err
}

// offset returns the length of the replication stream.
func (s *shop) offset(ctx context.Context) (int64, error) {
	state, err := s.replication(ctx)
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(state, "master_repl_offset:")
	digits, _, _ := strings.Cut(after, "\r\n")
	return strconv.ParseInt(digits, 10, 64)
}

func (s *shop) replication(ctx context.Context) (string, error) {
	rdb, err := s.client()
	if err != nil {
		return "", err
	}
	defer rdb.Close()
	return rdb.Info(ctx, "replication").Result()
}
