package follower_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions/suite"
)

// A writer changes the subscriptions of stores 1 and 2, whose IDs are few, so that writers
// often meet.
const (
	highestID    = 40
	longestPause = time.Second // how long a transaction may stay open between two statements
)

type writer struct {
	random  *rand.Rand
	pool    *pgxpool.Pool
	longest time.Duration // pause
}

// operation is one of what a transaction does.
type operation func(w *writer, ctx context.Context, tx pgx.Tx) error

// operations has each as often as it is done compared to the others.
var operations = slices.Concat(
	slices.Repeat([]operation{(*writer).insert}, 20),
	slices.Repeat([]operation{(*writer).update}, 20),
	slices.Repeat([]operation{runs("DELETE FROM subscriptions WHERE store_id = $1 AND id = $2", aStore, anID)}, 12),
	slices.Repeat([]operation{(*writer).replace}, 6),
	slices.Repeat([]operation{runs(`UPDATE subscriptions s SET id = $3 WHERE store_id = $1 AND id = $2
		AND NOT EXISTS (SELECT FROM subscriptions o WHERE o.store_id = s.store_id AND o.id = $3)`, aStore, anID, anID)}, 6),
	// The other store's cards have the same IDs.
	slices.Repeat([]operation{runs(`UPDATE subscriptions s SET store_id = 3 - store_id WHERE store_id = $1 AND id = $2
		AND NOT EXISTS (SELECT FROM subscriptions o WHERE o.store_id = 3 - s.store_id AND o.id = $2)`, aStore, anID)}, 3),
	slices.Repeat([]operation{runs("UPDATE saved_cards SET last_four = lpad($3::int::text, 4, '0') WHERE store_id = $1 AND id = $2", aStore, aCard, below(10_000))}, 6),
	slices.Repeat([]operation{(*writer).replaceCard}, 3),
	slices.Repeat([]operation{(*writer).copyMany}, 4),
	slices.Repeat([]operation{runs("UPDATE subscriptions SET price_amount = $2 WHERE id % 3 = $1", below(3), below(100_000))}, 2),
	[]operation{runs("DELETE FROM subscriptions WHERE id % 3 = $1", below(3)), runs("TRUNCATE subscriptions")},
)

// runs returns an operation that runs a statement with random arguments.
func runs(sql string, arguments ...func(w *writer) any) operation {
	return func(w *writer, ctx context.Context, tx pgx.Tx) error {
		args := make([]any, len(arguments))
		for i, argument := range arguments {
			args[i] = argument(w)
		}
		return execute(ctx, tx, sql, args...)
	}
}

func aStore(w *writer) any { return w.store() }
func anID(w *writer) any   { return w.id() }
func aCard(w *writer) any  { return w.card() }

func below(n int) func(w *writer) any { return func(w *writer) any { return w.random.IntN(n) } }

// writeUntil runs transactions until ctx ends.
func (w *writer) writeUntil(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.transaction(context.WithoutCancel(ctx)); err != nil && !isExpected(err) {
			return err
		}
		w.pause()
	}
	return nil
}

// errRollback rolls a transaction or a savepoint back.
var errRollback = errors.New("rolled back")

// Error codes of Postgres.
const (
	lockTimeout  = "55P03"
	notSupported = "0A000" // at this isolation level
)

// isExpected reports whether a transaction failed because of another one, or on purpose.
func isExpected(err error) bool {
	if errors.Is(err, errRollback) {
		return true
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(refused.Code, "23") || strings.HasPrefix(refused.Code, "40") || refused.Code == lockTimeout || refused.Code == notSupported)
}

func (w *writer) transaction(ctx context.Context) error {
	options := pgx.TxOptions{}
	if w.chance(4) {
		options.IsoLevel = pgx.RepeatableRead
	}
	return pgx.BeginTxFunc(ctx, w.pool, options, func(tx pgx.Tx) error {
		if w.chance(3) { // begins early and writes late, or takes its snapshot early
			early := []string{"SELECT pg_current_xact_id()", "SELECT"}[w.random.IntN(2)]
			if err := execute(ctx, tx, early); err != nil {
				return err
			}
			w.pause()
		}
		for range 1 + w.random.IntN(4) {
			if err := w.statement(ctx, tx); err != nil {
				return err
			}
			w.pause()
		}
		if w.chance(8) {
			return errRollback
		}
		return nil
	})
}

func (w *writer) chance(oneIn int) bool { return w.random.IntN(oneIn) == 0 }

// pause waits a moment, now and then longer.
func (w *writer) pause() {
	most := 3 * time.Millisecond
	if w.chance(60) {
		most = w.longest
	}
	time.Sleep(time.Duration(w.random.Int64N(int64(most))))
}

// statement does one operation, or several after a savepoint.
func (w *writer) statement(ctx context.Context, tx pgx.Tx) error {
	if !w.chance(5) {
		return w.operate(ctx, tx)
	}
	err := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
		for range 1 + w.random.IntN(2) {
			if err := w.operate(ctx, savepoint); err != nil {
				return err
			}
		}
		if w.chance(2) {
			return errRollback
		}
		return nil
	})
	if errors.Is(err, errRollback) {
		return nil
	}
	return err
}

func (w *writer) operate(ctx context.Context, tx pgx.Tx) error {
	return operations[w.random.IntN(len(operations))](w, ctx, tx)
}

// columns of a new row. Its customer has the cards 1 to 5.
var newRow = strings.Split("store_id, id, customer_id, calling_code, status, starts_at, ends_at, current_period_start, "+
	"current_period_end, duration, order_id, price_amount, currency, product_id, variant_id, saved_card_id", ", ")

// row returns a new row with an ID.
func (w *writer) row(id int64) []any {
	at := suite.Now.Add(time.Duration(w.random.IntN(1000)) * time.Hour)
	return []any{
		w.store(), id, int64(1001), "966", "active", at, at.AddDate(0, 1, 0), at,
		at.AddDate(0, 1, 0), "monthly", int64(1), w.random.Int64N(100_000), "SAR", int64(4), int64(41), w.cardOrNone(),
	}
}

func (w *writer) store() int64 {
	if w.chance(5) {
		return 2
	}
	return 1
}

func (w *writer) id() int64   { return 1 + w.random.Int64N(highestID) }
func (w *writer) card() int64 { return 1 + w.random.Int64N(5) }

func (w *writer) cardOrNone() *int64 {
	if card := w.card(); !w.chance(3) {
		return &card
	}
	return nil
}

func execute(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

func (w *writer) insert(ctx context.Context, tx pgx.Tx) error {
	return execute(ctx, tx, "INSERT INTO subscriptions ("+strings.Join(newRow, ", ")+
		") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT DO NOTHING", w.row(w.id())...)
}

func (w *writer) update(ctx context.Context, tx pgx.Tx) error {
	return execute(ctx, tx, []string{
		"UPDATE subscriptions SET price_amount = $3, saved_card_id = $4 WHERE store_id = $1 AND id = $2",
		"UPDATE subscriptions SET metadata = jsonb_build_object('n', $3::int), saved_card_id = coalesce($4, saved_card_id), updated_at = now() WHERE store_id = $1 AND id = $2",
		"UPDATE subscriptions SET status = 'paused', paused_at = now(), paused_remaining_days = $3, saved_card_id = $4 WHERE store_id = $1 AND id = $2",
		"UPDATE subscriptions SET scheduled_variant_id = nullif($3 % 2 * 42, 0), saved_card_id = $4 WHERE store_id = $1 AND id = $2",
	}[w.random.IntN(4)], w.store(), w.id(), w.random.IntN(100_000), w.cardOrNone())
}

// replace deletes a subscription and inserts another one with its ID.
func (w *writer) replace(ctx context.Context, tx pgx.Tx) error {
	row := w.row(w.id())
	if err := execute(ctx, tx, "DELETE FROM subscriptions WHERE store_id = $1 AND id = $2", row[:2]...); err != nil {
		return err
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"subscriptions"}, newRow, pgx.CopyFromRows([][]any{row}))
	return err
}

// replaceCard deletes a card, so that its subscriptions have none, and adds another one.
func (w *writer) replaceCard(ctx context.Context, tx pgx.Tx) error {
	store, card := w.store(), w.card()
	if err := execute(ctx, tx, "DELETE FROM saved_cards WHERE store_id = $1 AND id = $2", store, card); err != nil {
		return err
	}
	return execute(ctx, tx, "INSERT INTO saved_cards (store_id, id, customer_id, last_four, scheme) VALUES ($1, $2, 1001, '0000', 'visa') ON CONFLICT DO NOTHING", store, card)
}

// copyMany copies rows in, in place of those that have their IDs.
func (w *writer) copyMany(ctx context.Context, tx pgx.Tx) error {
	var rows [][]any
	first := w.id()
	for id := first; id < first+5; id++ {
		rows = append(rows, w.row(id))
	}
	if err := execute(ctx, tx, "DELETE FROM subscriptions WHERE id >= $1 AND id < $1 + 5", first); err != nil {
		return err
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"subscriptions"}, newRow, pgx.CopyFromRows(rows))
	return err
}
