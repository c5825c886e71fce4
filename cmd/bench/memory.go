package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"commerce/cmd/bench/results"
)

// copies is the number of carts whose memory is measured in Redis. The memory includes the tables
// of keys and expiries, whose sizes are powers of two.
const copies = 1 << 15

// benchMemory measures how much memory of Redis a cart takes among many others, and how much disk
// of Postgres a subscription takes.
func benchMemory(ctx context.Context, s *stage) (results.Benchmark, error) {
	shops, err := openShops(ctx, s, s.rows)
	if err != nil {
		return results.Benchmark{}, err
	}
	var b results.Benchmark
	for _, shop := range shops {
		for _, c := range []struct {
			name    string
			mark    mark
			lines   int
			changes int
			atMost  float64
		}{
			{"5 lines", plain, fewLines, fewLines, 360},
			{"5 lines, added by the published client", stamped, fewLines, fewLines, 500},
			{"5 lines, each with an Idempotency-Key", keyed, fewLines, fewLines, 0},
			{"5 lines, 256 changes with an Idempotency-Key", keyed, fewLines, 256, 20_480},
			{"20 lines", plain, 20, 20, 0},
			{"100 lines", plain, products, products, 0},
		} {
			size, err := shop.perCart(ctx, c.mark, c.lines, c.changes)
			if err != nil {
				return b, fmt.Errorf("%s: %w", c.name, err)
			}
			b.Values = append(b.Values, results.Value{Name: "Redis memory of a cart, " + c.name + shop.label, Unit: "bytes", Figure: results.FigureOf(size), AtMost: c.atMost})
		}
		disk, err := shop.perSubscription(ctx)
		if err != nil {
			return b, err
		}
		b.Values = append(b.Values, disk...)
	}
	return b, nil
}

// perCart returns the memory per cart of many copies of a cart after some changes.
func (s *shop) perCart(ctx context.Context, mark mark, lines, changes int) (float64, error) {
	rdb := s.redis.client()
	defer rdb.Close()
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return 0, err
	}
	token := rand.Text()
	for n := range changes {
		header := http.Header{"X-Public-Key": {"pk_demo"}, "X-Cart-Token": {token}}
		mark(header, token, n)
		if _, err := s.call(ctx, http.MethodPost, "/cart/add", header, addition(n%lines), nil); err != nil {
			return 0, err
		}
	}
	keys, err := rdb.Keys(ctx, "*").Result()
	if err != nil {
		return 0, err
	}
	dumps := map[string]string{}
	for _, key := range keys {
		if dumps[key], err = rdb.Dump(ctx, key).Result(); err != nil {
			return 0, err
		}
	}
	before, err := usedMemory(ctx, rdb)
	if err != nil {
		return 0, err
	}
	if err := restoreCopies(ctx, rdb, dumps); err != nil {
		return 0, err
	}
	after, err := usedMemory(ctx, rdb)
	return (after - before) / copies, err
}

// restoreCopies adds copies of keys under names of the same length.
func restoreCopies(ctx context.Context, rdb *redis.Client, dumps map[string]string) error {
	const atOnce = 1 << 10
	for from := 0; from < copies; from += atOnce {
		_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for n := range atOnce {
				for key, dump := range dumps {
					number := fmt.Sprintf("%08d", from+n)
					tag := strings.Index(key, ":g:") + len(":g:")
					p.Restore(ctx, key[:tag]+number+key[tag+len(number):], 720*time.Hour, dump)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("copy a cart: %w", err)
		}
	}
	return nil
}

func usedMemory(ctx context.Context, rdb *redis.Client) (float64, error) {
	info := rdb.InfoMap(ctx, "memory")
	if info.Err() != nil {
		return 0, info.Err()
	}
	return strconv.ParseFloat(info.Item("Memory", "used_memory"), 64)
}

// perSubscription returns the sizes of the tables of the generated subscriptions, per row.
func (s *shop) perSubscription(ctx context.Context) ([]results.Value, error) {
	db, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return nil, err
	}
	defer db.Close(context.WithoutCancel(ctx))
	var rows, table, indexes, others float64
	err = db.QueryRow(ctx, `SELECT (SELECT count(*) FROM subscriptions)::float8,
		pg_table_size('subscriptions')::float8, pg_indexes_size('subscriptions')::float8,
		(pg_total_relation_size('customers') + pg_total_relation_size('saved_cards'))::float8`).Scan(&rows, &table, &indexes, &others)
	if err != nil {
		return nil, fmt.Errorf("sizes of the tables: %w", err)
	}
	of := func(what string, size float64) results.Value {
		return results.Value{Name: "Postgres disk per subscription, " + what + s.label, Unit: "bytes", Figure: results.FigureOf(size / rows)}
	}
	return []results.Value{
		of("its row", table), of("its indexes", indexes), of("its customer and card", others),
		of("with its indexes, customer and card", table+indexes+others),
	}, nil
}
