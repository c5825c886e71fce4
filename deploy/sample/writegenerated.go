package sample

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/store"
	"commerce/cart"
)

// copyRows is the number of rows in one COPY. Postgres keeps every row of a
// statement in memory until it has checked the row's foreign keys.
const copyRows = 20_000

// Write adds the stores, customers, cards and subscriptions to a database that has
// the sample's stores and products. It calls progress after every 1,000 rows or
// fewer, with the number of rows written since the last call; the calls add up to
// Rows. Write is not one transaction: an error leaves the rows written so far.
// Only one Write may run on a database at a time.
func (g *Generator) Write(ctx context.Context, db *pgxpool.Pool, progress func(rows int)) error {
	if err := g.writeStores(ctx, db); err != nil {
		return err
	}
	if err := g.reserveIDs(ctx, db); err != nil {
		return fmt.Errorf("reserve ids: %w", err)
	}
	for _, t := range []struct {
		name    string
		columns []string
		rows    int
		row     func(i int) []any
	}{
		{"customers", []string{"store_id", "id", "email", "phone", "calling_code"}, g.customers, g.customer},
		{"saved_cards", []string{"store_id", "id", "customer_id", "last_four", "scheme"}, g.cards(), g.card},
		{"subscriptions", subscriptionColumns(), g.n, g.subscription},
	} {
		for from := 0; from < t.rows; from += copyRows {
			source := &rowSource{row: t.row, next: from, end: min(from+copyRows, t.rows), progress: progress}
			if _, err := db.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, source); err != nil {
				return fmt.Errorf("copy %s: %w", t.name, err)
			}
		}
	}
	// Postgres answers a list from its index alone only where it knows that all rows
	// are visible.
	if _, err := db.Exec(ctx, "VACUUM (ANALYZE) stores, products, plans, customers, saved_cards, subscriptions"); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	return nil
}

// writeStores writes the generated stores. The sample's store is already there.
func (g *Generator) writeStores(ctx context.Context, db *pgxpool.Pool) error {
	var stores []*store.Store
	products := map[int64][]*cart.Product{}
	for _, s := range g.stores[1:] {
		stores = append(stores, s.store)
		products[s.store.ID] = s.products
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		return WriteStores(ctx, tx, stores, products, nil)
	})
}

// reserveIDs finds ids that no row has yet.
func (g *Generator) reserveIDs(ctx context.Context, db *pgxpool.Pool) error {
	const reserve = "SELECT setval(pg_get_serial_sequence($1, 'id'), nextval(pg_get_serial_sequence($1, 'id')) + $2) - $2"
	if err := db.QueryRow(ctx, "SELECT greatest(max(id), 999999) + 1 FROM customers").Scan(&g.firstCustomer); err != nil {
		return err
	}
	if err := db.QueryRow(ctx, reserve, "saved_cards", g.cards()).Scan(&g.firstCard); err != nil {
		return err
	}
	return db.QueryRow(ctx, reserve, "subscriptions", g.n).Scan(&g.firstID)
}

// rowSource is a pgx.CopyFromSource of rows [next, end).
type rowSource struct {
	row       func(i int) []any
	next, end int
	values    []any
	progress  func(rows int)
}

func (s *rowSource) Next() bool {
	if s.next == s.end {
		return false
	}
	s.values = s.row(s.next)
	if s.next++; s.next%1000 == 0 || s.next == s.end {
		s.progress((s.next-1)%1000 + 1)
	}
	return true
}

func (s *rowSource) Values() ([]any, error) { return s.values, nil }
func (s *rowSource) Err() error             { return nil }
