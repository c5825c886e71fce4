package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/cmd/bench/results"
)

// way is one way to read all rows of a store. read returns their number.
type way struct {
	name   string
	read   func(context.Context) (int, error)
	atMost float64 // the target of its time, compared to the first way; 0 for none
}

// ways are the ways to read the rows of a store. The first one is that of a usual client.
func (s *shop) ways(rows int) []way {
	streamed := func(f format) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) { n, _, err := s.stream(ctx, f); return n, err }
	}
	return []way{
		{"pages of 15", s.walk(rows, 15), 0},
		{"pages of 100", s.walk(rows, 100), 0},
		{"NDJSON", streamed(ndjson()), 0.2},
		{"CSV", streamed(csv()), 0.2},
	}
}

// benchExport measures exports of a store that has a tenth of all rows, compared to reading its
// list page by page.
func benchExport(ctx context.Context, s *stage) (results.Benchmark, error) {
	shops, err := openShops(ctx, s, s.rows)
	if err != nil {
		return results.Benchmark{}, err
	}
	var b results.Benchmark
	for _, shop := range shops {
		values, err := shop.export(ctx, s.options)
		if err != nil {
			return b, err
		}
		b.Values = append(b.Values, values...)
	}
	return b, nil
}

// export reads all rows in each way once in every round.
func (s *shop) export(ctx context.Context, o options) ([]results.Value, error) {
	rows, err := s.rows(ctx)
	if err != nil {
		return nil, err
	}
	ways := s.ways(rows)
	took, cpu, growth := make([][]float64, len(ways)), make([][]float64, len(ways)), make([][]float64, len(ways))
	err = inRounds(ctx, o, len(ways), func(i int) error {
		if err := resetPeak(s.pid()); err != nil {
			return err
		}
		before, _, err := resident(s.pid())
		if err != nil {
			return err
		}
		var began, ended time.Time
		used, err := s.using(ctx, func() error {
			began = time.Now()
			n, err := ways[i].read(ctx)
			ended = time.Now()
			if err == nil && n != rows {
				err = fmt.Errorf("%d rows of %d", n, rows)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", ways[i].name, err)
		}
		_, peak, err := resident(s.pid())
		took[i] = append(took[i], ended.Sub(began).Seconds())
		cpu[i] = append(cpu[i], (used.server+used.store).Seconds()*1e6/float64(rows))
		growth[i] = append(growth[i], megabytes(max(peak, before)-before))
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []results.Value
	for i, w := range ways {
		name := w.name + s.label
		rates := make([]float64, len(took[i]))
		for round, seconds := range took[i] {
			rates[round] = float64(rows) / seconds
		}
		all = append(all,
			results.Value{Name: name, Unit: "rows/s", Figure: results.FigureOf(rates...)},
			results.Value{Name: name + ": CPU per row", Unit: "µs", Figure: results.FigureOf(cpu[i]...)},
			results.Value{Name: name + ": growth of the resident memory", Unit: "MB", Figure: results.FigureOf(growth[i]...), AtMost: 16})
		if i > 0 {
			all = append(all, results.Value{Name: name + ": time", Unit: "× " + ways[0].name, Figure: results.RatioOf(took[i], took[0]), AtMost: w.atMost})
		}
	}
	return all, nil
}

// rows returns the number of the store's rows. It waits until all are among the changes: rows
// appear there when no older transaction is open on the Postgres server.
func (s *shop) rows(ctx context.Context) (n int, err error) {
	db, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return 0, err
	}
	defer db.Close(ctx)
	var begun, ended uint64
	if err := db.QueryRow(ctx, "SELECT count(*), pg_snapshot_xmax(pg_current_snapshot()) FROM subscriptions WHERE store_id = 1").Scan(&n, &begun); err != nil {
		return 0, err
	}
	for began := time.Now(); ended < begun; time.Sleep(time.Millisecond) {
		if err := db.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())").Scan(&ended); err != nil {
			return 0, err
		}
		if time.Since(began) > time.Minute {
			return 0, errors.New("an old transaction on the Postgres server hides rows from the changes")
		}
	}
	return n, nil
}

// walk reads all rows by links from page to page, of which only the last one may not be full.
func (s *shop) walk(rows, perPage int) func(context.Context) (int, error) {
	return func(ctx context.Context) (read int, err error) {
		for link := fmt.Sprintf("%s/subscriptions?per_page=%d", s.url, perPage); link != ""; read += perPage {
			if link, err = s.linkAfter(ctx, link); err != nil {
				return read, err
			}
		}
		if read >= rows && read < rows+perPage {
			read = rows
		}
		return read, nil
	}
}

// format is a format of exports. Lines are recognized by how they begin.
type format struct {
	name, accept string
	row, next    string // beginnings of lines with a row, and with a cursor
}

func ndjson() format {
	return format{"NDJSON", "application/x-ndjson", `{"subscription":`, `{"next":"`}
}

func csv() format { return format{"CSV", "text/csv", "row,", "next,"} }

// longestLine is above the length of any line: metadata has up to 16 KiB before escaping.
const longestLine = 256 << 10

// stream reads all rows in one response, and returns their number and the last cursor. Rows after
// the last cursor are an error.
func (s *shop) stream(ctx context.Context, f format) (rows int, head string, err error) {
	header := s.merchant.Clone()
	header.Set("Accept", f.accept)
	response, err := s.open(ctx, http.MethodGet, "/subscriptions/changes", header, nil)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, "", fmt.Errorf("%s: %s", f.name, response.Status)
	}
	lines, unconfirmed := bufio.NewReaderSize(response.Body, longestLine), 0
	for {
		line, err := lines.ReadSlice('\n')
		cursor, ok := bytes.CutPrefix(line, []byte(f.next))
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && unconfirmed == 0:
			return rows, head, nil
		case err != nil:
			return rows, head, fmt.Errorf("%s, after %d rows: %w", f.name, rows, err)
		case bytes.HasPrefix(line, []byte(f.row)):
			unconfirmed++
		case ok:
			rows, unconfirmed, head = rows+unconfirmed, 0, string(cursor[:max(0, bytes.IndexAny(cursor, `",`))])
		}
	}
}
