package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/schollz/progressbar/v3"

	"commerce/deploy/sample"
)

// copyRows is how many rows go into one COPY. Postgres remembers each row of a
// statement until it has checked what the row refers to.
const copyRows = 20_000

// seedSubscriptions writes the sample's customers and subscriptions, dates relative
// to now, and adds as many synthetic ones as asked for. The sample's stores and
// products have to be there. Its progress shows on out's errors.
func seedSubscriptions(ctx context.Context, db *pgxpool.Pool, out output, now time.Time, synthetic int) error {
	customers, all := sample.Customers(), sample.Subscriptions(now)
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		return sample.WriteSubscriptions(ctx, tx, customers, all)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote the sample's %d subscriptions of %d customers\n", len(all), len(customers))
	if synthetic == 0 {
		return nil
	}
	return addSynthetic(ctx, db, out, now, synthetic)
}

// addSynthetic adds n subscriptions, with stores and customers of their own.
func addSynthetic(ctx context.Context, db *pgxpool.Pool, out output, now time.Time, n int) error {
	crowd := newCrowd(n, now)
	if err := writeMarkets(ctx, db, crowd.markets); err != nil {
		return err
	}
	if err := crowd.reserveIDs(ctx, db); err != nil {
		return fmt.Errorf("reserve ids: %w", err)
	}
	bar := progressbar.NewOptions(n+crowd.customers+crowd.cards(),
		progressbar.OptionSetWriter(out.errors), progressbar.OptionSetDescription("subscriptions, customers, cards"),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(200*time.Millisecond),
		progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth())
	for _, t := range []struct {
		name    string
		columns []string
		rows    int
		row     func(i int) []any
	}{
		{"customers", []string{"store_id", "id", "email", "phone", "calling_code"}, crowd.customers, crowd.customer},
		{"saved_cards", []string{"store_id", "id", "customer_id", "last_four", "scheme"}, crowd.cards(), crowd.card},
		{"subscriptions", sample.SubscriptionColumns(), n, crowd.subscription},
	} {
		for from := 0; from < t.rows; from += copyRows {
			source := &counted{row: t.row, next: from, end: min(from+copyRows, t.rows), bar: bar}
			if _, err := db.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, source); err != nil {
				return fmt.Errorf("copy %s: %w", t.name, err)
			}
		}
	}
	if err := bar.Finish(); err != nil {
		return err
	}
	fmt.Fprintln(out.errors)
	// Lists read indexes alone only where Postgres knows that all rows are visible.
	if _, err := db.Exec(ctx, "VACUUM (ANALYZE) stores, products, plans, customers, saved_cards, subscriptions"); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	fmt.Fprintf(out, "added %d synthetic subscriptions of %d customers in %d stores\n", n, crowd.customers, len(crowd.markets))
	return nil
}

// counted is a pgx.CopyFromSource of rows [next, end) that tells a progress bar.
type counted struct {
	row       func(i int) []any
	next, end int
	values    []any
	bar       *progressbar.ProgressBar
}

func (c *counted) Next() bool {
	if c.next == c.end {
		return false
	}
	c.values = c.row(c.next)
	if c.next++; c.next%1000 == 0 || c.next == c.end {
		_ = c.bar.Add((c.next-1)%1000 + 1)
	}
	return true
}

func (c *counted) Values() ([]any, error) { return c.values, nil }
func (c *counted) Err() error             { return nil }
