// Package ingest imports products and subscriptions of a store from files into the
// platform's tables. It writes all of the files or nothing. docs/data.md describes the
// files: one JSON object per line, whose members are the columns of the tables.
//
// The rows are first staged in temporary tables. There the constraints of the schema are
// evaluated row by row, so each fault can name its line, and the schema stays the only
// place with these rules.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
)

// ErrNoStore means that the store is not in the database.
var ErrNoStore = errors.New("ingest: no such store")

// File is a file to import. Products and Subscriptions make one.
type File struct {
	Name string // for faults
	From io.Reader

	shape *shape
}

// Products is a file with a product on each line.
func Products(name string, from io.Reader) File { return File{name, from, productShape} }

// Subscriptions is a file with a subscription on each line.
func Subscriptions(name string, from io.Reader) File { return File{name, from, subscriptionShape} }

// Progress receives how far an import is. Its functions may be nil.
type Progress struct {
	Read     func(bytes int64) // since the last call
	Checking func()            // all files are read
	Writing  func(lines int64) // all files are checked; the number of lines
	Written  func(lines int64) // since the last call
}

// Count is the number of rows of a table that an import inserted or changed.
type Count struct {
	Table string
	Rows  int64
}

// Import writes the files to a store. There may be one of each kind, products first. The
// error is *Faults if a file has faults. With any error nothing was written, except that
// IDs of cards may have been used up. Imports of the same store run one after the other.
//
// conn must be writable and have no statement timeout. Import leaves a lock and temporary
// tables on conn: close it afterwards.
func Import(ctx context.Context, conn *pgx.Conn, store int64, files []File, progress Progress) ([]Count, error) {
	progress = progress.complete()
	if err := prepare(ctx, conn, store); err != nil {
		return nil, err
	}
	tables, err := readTables(ctx, conn)
	if err != nil {
		return nil, err
	}
	faults := &Faults{}
	lines, err := newStage(conn, tables, faults).all(ctx, files, progress.Read)
	if err != nil {
		return nil, err
	}
	progress.Checking()
	c := &checker{conn, store, tables, faults}
	if err := c.all(ctx, files); err != nil {
		return nil, err
	}
	if err := assignCardIDs(ctx, conn, store); err != nil {
		return nil, err
	}
	if err := markTimeline(ctx, conn); err != nil {
		return nil, err
	}
	w := &writer{store: store, tables: tables, written: map[string]int64{}, progress: progress}
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return w.all(ctx, tx, files, lines) }); err != nil {
		return nil, err
	}
	return w.counts(files), nil
}

// prepare waits until no other import of the store runs. It gives the session more memory,
// so that the checks of many rows can sort there.
func prepare(ctx context.Context, conn *pgx.Conn, store int64) error {
	if _, err := conn.Exec(ctx, "SET work_mem = '64MB'"); err != nil {
		return fmt.Errorf("set memory: %w", err)
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended('commerce import', $1))", store); err != nil {
		return fmt.Errorf("wait for another import: %w", err)
	}
	var found bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM stores WHERE id = $1)", store).Scan(&found); err != nil {
		return fmt.Errorf("find store %d: %w", store, err)
	}
	if !found {
		return ErrNoStore
	}
	return nil
}

// markTimeline records the timeline of the write-ahead log if it is new. Otherwise the long
// transaction would, and only its commit would show it.
func markTimeline(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "SELECT mark_timeline()"); err != nil {
		return fmt.Errorf("mark the timeline: %w", err)
	}
	return nil
}

// readTables reads the tables of both kinds of files and makes their staging tables.
func readTables(ctx context.Context, conn *pgx.Conn) (map[*shape]*table, error) {
	tables := map[*shape]*table{}
	for _, s := range append(productShape.all(), subscriptionShape.all()...) {
		t, err := readTable(ctx, conn, s)
		if err != nil {
			return nil, err
		}
		if err := t.create(ctx, conn); err != nil {
			return nil, err
		}
		tables[s] = t
	}
	return tables, nil
}

func (p Progress) complete() Progress {
	ignore := func(int64) {}
	if p.Read == nil {
		p.Read = ignore
	}
	if p.Checking == nil {
		p.Checking = func() {}
	}
	if p.Writing == nil {
		p.Writing = ignore
	}
	if p.Written == nil {
		p.Written = ignore
	}
	return p
}
