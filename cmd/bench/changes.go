package main

import (
	"context"
	"errors"
	"net/url"
	"time"

	"commerce/cmd/bench/results"
)

// poll asks for changes when there is nothing new.
func (b *listBench) poll(ctx context.Context) (testCase, error) {
	if err := b.awaitChanges(ctx); err != nil {
		return testCase{}, err
	}
	e := newExport(b, ndjson)
	defer e.close()
	if _, err := e.all(ctx); err != nil {
		return testCase{}, err
	}
	return b.ours("changes, nothing new", "/changes?after="+url.QueryEscape(e.head),
		results.Comparison{Cost: results.CPU, Of: firstPage, AtMost: new(0.5)}), nil
}

// awaitChanges waits until all rows are among the changes. Rows appear there when no older
// transaction is open on the Postgres server.
func (b *listBench) awaitChanges(ctx context.Context) error {
	var until, ended uint64
	if err := b.db.QueryRow(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())").Scan(&until); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if err := b.db.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())").Scan(&ended); err != nil {
			return err
		}
		if ended >= until {
			return nil
		}
		if time.Since(began) > time.Minute {
			return errors.New("an old transaction on the Postgres server hides rows from the changes")
		}
	}
}
