package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/cmd/bench/results"
)

// benchExport measures exports of a store that has all rows, compared to reading its list
// page by page.
func benchExport(ctx context.Context, s *stage) (results.Benchmark, error) {
	b := results.Benchmark{Name: "export", Store: "Postgres"}
	first, err := openExports(ctx, s, s.binary, s.options.database, "")
	if err != nil {
		return b, err
	}
	services := []*exports{first}
	if s.against != "" {
		second, err := openExports(ctx, s, s.against, "", " [against]")
		if err != nil {
			return b, err
		}
		services = append(services, second)
	}
	curve := results.Curve{Name: "export", X: "time since the start of the export (s)", Y: "resident memory (MB)"}
	for _, e := range services {
		defer e.close()
		values, series, err := e.complete(ctx, s.turn)
		if err != nil {
			return b, err
		}
		b.Values, curve.Series = append(b.Values, values...), append(curve.Series, series...)
	}
	b.Curves = []results.Curve{curve}
	rates, err := measureWays(ctx, s.options, services)
	b.Values = append(b.Values, rates...)
	return b, err
}

// exports is a store with all rows, and the ways to read them.
type exports struct {
	*listBench
	label   string // follows the names of its results
	usual   *walk  // with pages of the default size
	walk    *walk  // with the longest pages
	remote  *walk  // the same, of a client at a distance
	streams []*export
}

// openExports starts a service on a database whose first store has all rows; "" fills one.
func openExports(ctx context.Context, s *stage, binary, database, label string) (*exports, error) {
	if database == "" {
		var err error
		if database, err = s.database(ctx, binary, s.rows/10); err != nil {
			return nil, err
		}
		if err := multiply(ctx, database, s.rows); err != nil {
			return nil, fmt.Errorf("fill the database: %w", err)
		}
	}
	b, err := newListBench(ctx, s, binary, database)
	if err != nil {
		return nil, err
	}
	e := &exports{listBench: b, label: label, streams: []*export{newExport(b, ndjson), newExport(b, csv)}}
	if e.usual, err = newWalk(b, usualPage, 0); err != nil {
		return nil, err
	}
	if e.walk, err = newWalk(b, longPage, 0); err != nil {
		return nil, err
	}
	if e.remote, err = newWalk(b, longPage, distance); err != nil {
		return nil, err
	}
	return e, b.awaitChanges(ctx)
}

func (e *exports) close() {
	e.usual.close()
	e.walk.close()
	e.remote.close()
	for _, stream := range e.streams {
		stream.close()
	}
}

// multiply copies the first store's rows until it has that many, which takes about a
// third less time than generating them.
func multiply(ctx context.Context, database string, rows int) error {
	db, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	var columns string
	err = db.QueryRow(ctx, `SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
		WHERE table_name = 'subscriptions' AND column_name NOT IN ('id', 'changed_in')`).Scan(&columns)
	if err != nil {
		return err
	}
	var n int
	if err := db.QueryRow(ctx, "SELECT count(*) FROM subscriptions WHERE store_id = 1").Scan(&n); err != nil {
		return err
	}
	bar := progress("fill", rows)
	for n < rows {
		copied, err := db.Exec(ctx, "INSERT INTO subscriptions ("+columns+") SELECT "+columns+
			" FROM subscriptions WHERE store_id = 1 ORDER BY id LIMIT $1", min(rows-n, 100_000))
		if err != nil {
			return err
		}
		n += int(copied.RowsAffected())
		_ = bar.Set(n)
	}
	_, err = db.Exec(ctx, "VACUUM (ANALYZE) subscriptions")
	return err
}

// complete exports all rows once in each format, and measures the memory of the service. It
// reads some pages first, which fills caches.
func (e *exports) complete(ctx context.Context, turn time.Duration) ([]results.Value, []results.Series, error) {
	if _, err := e.walk.read(ctx, time.Now().Add(turn)); err != nil {
		return nil, nil, err
	}
	var all []results.Value
	var curves []results.Series
	for _, stream := range e.streams {
		before, err := resident(e.service.pid())
		if err != nil {
			return nil, nil, err
		}
		began := time.Now()
		points, rows, err := e.watched(ctx, stream)
		if err != nil {
			return nil, nil, err
		}
		name := stream.name + e.label
		curves = append(curves, results.Series{Name: name, Points: points})
		all = append(all, memoryOf(name+", all rows", megabytes(before), points)...)
		all = append(all,
			results.Value{Name: name + ", all rows: rows", Figure: results.FigureOf(float64(rows))},
			results.Value{Name: name + ", all rows: time", Unit: "s", Figure: results.FigureOf(time.Since(began).Seconds())})
	}
	return all, curves, nil
}

// watched reads all rows of a stream, and samples the resident memory of the service.
func (e *exports) watched(ctx context.Context, stream *export) ([]results.Point, int, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	points := make(chan []results.Point, 1)
	go func() { points <- residentOver(watching, e.service.pid(), 20*time.Millisecond, func() {}) }()
	rows, err := stream.all(ctx)
	stop()
	return <-points, rows, err
}

// memoryOf summarizes the resident memory during an export that began with before. All are
// in megabytes.
func memoryOf(name string, before float64, points []results.Point) []results.Value {
	highest := before
	for _, p := range points {
		highest = max(highest, p.Median)
	}
	return []results.Value{
		{Name: name + ": resident memory before", Unit: "MB", Figure: results.FigureOf(before)},
		{Name: name + ": highest resident memory", Unit: "MB", Figure: results.FigureOf(highest)},
		{Name: name + ": growth", Unit: "MB", Figure: results.FigureOf(highest - before), AtMost: new(16.0)},
	}
}
