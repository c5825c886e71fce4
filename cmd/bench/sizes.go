package main

import (
	"context"
	"fmt"
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

// benchSizes measures how much memory of Redis a cart takes among many others, and how much disk
// of Postgres a subscription takes.
func benchSizes(ctx context.Context, s *stage) (results.Benchmark, error) {
	b := results.Benchmark{Name: "sizes"}
	shop, err := openShop(ctx, s, s.binary)
	if err != nil {
		return b, err
	}
	m := memory{shop}
	for _, c := range []struct {
		name    string
		mark    mark
		changes int
	}{
		{"Redis memory per cart, 5 lines", plain, fewLines},
		{"Redis memory per cart, 5 lines, published client", stamped, fewLines},
		{"Redis memory per cart, 5 lines, each with an Idempotency-Key", keyed, fewLines},
		{"Redis memory per cart, 20 lines", plain, 20},
	} {
		size, err := m.perCart(ctx, c.mark, c.changes)
		if err != nil {
			return b, err
		}
		b.Values = append(b.Values, results.Value{Name: c.name, Unit: "bytes", Figure: results.FigureOf(size)})
	}
	disk, err := subscriptionSizes(ctx, s)
	b.Values = append(b.Values, disk...)
	return b, err
}

// perCart returns the memory per cart of many copies of a cart with that many lines.
func (m memory) perCart(ctx context.Context, mark mark, lines int) (float64, error) {
	guest, err := m.newCart(ctx)
	if err != nil {
		return 0, err
	}
	for n := range lines {
		if err := m.add(ctx, guest, mark, n, n); err != nil {
			return 0, err
		}
	}
	rdb, err := m.client()
	if err != nil {
		return 0, err
	}
	defer rdb.Close()
	dumps := map[string]string{}
	err = m.eachKey(ctx, func(rdb *redis.Client, key string) (err error) {
		dumps[key], err = rdb.Dump(ctx, key).Result()
		return err
	})
	if err != nil {
		return 0, err
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
	info, err := rdb.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(info, "\nused_memory:")
	line, _, _ := strings.Cut(after, "\r")
	return strconv.ParseFloat(line, 64)
}

// subscriptionSizes measures the tables of the generated subscriptions.
func subscriptionSizes(ctx context.Context, s *stage) ([]results.Value, error) {
	database := s.options.database
	if database == "" {
		var err error
		if database, err = s.database(ctx, s.binary, s.rows); err != nil {
			return nil, err
		}
	}
	db, err := pgx.Connect(ctx, database)
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
	var values []results.Value
	for _, v := range []struct {
		name string
		size float64
	}{
		{"Postgres disk per subscription, its row", table},
		{"Postgres disk per subscription, its indexes", indexes},
		{"Postgres disk per subscription, its customer and card", others},
		{"Postgres disk per subscription, with its indexes, customer and card", table + indexes + others},
	} {
		values = append(values, results.Value{Name: v.name, Unit: "bytes", Figure: results.FigureOf(v.size / rows)})
	}
	return values, nil
}
