package subscriptions_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

// happened reads a whole history in pages, the newest event first.
func happened(t *testing.T, source subscriptions.Source, store, id int64, limit int) (all []subscriptions.Event) {
	t.Helper()
	for q := (subscriptions.HistoryQuery{Limit: limit}); ; {
		p, err := source.History(t.Context(), store, id, q)
		if errors.Is(err, subscriptions.ErrNotFound) && len(all) == 0 {
			return nil
		}
		assert.NoError(t, err)
		assert.Require(t, len(p.Events) <= limit && (len(p.Events) == limit || !p.More), "a page of %d has %d events, more: %v", limit, len(p.Events), p.More)
		all = append(all, p.Events...)
		if !p.More {
			return all
		}
		text, ok := p.Next().Text(store, id), false
		q.After, ok = subscriptions.ParsePlace(text, store, id)
		assert.Require(t, ok, "%s is no place", text)
	}
}

// A life is what subscriptions of store 1 were, by ID, as a writer of the test saw it.
type life map[int64][]subscriptions.State

// add adds a state unless nothing happened. A deletion removes the cards.
func (l life) add(id int64, s subscriptions.State) {
	all := l[id]
	if n := len(all); n > 0 && cmp.Equal(all[n-1], s, alike) {
		return
	}
	if s.Deleted {
		for i := range all {
			all[i].Card = nil
		}
	}
	l[id] = append(all, s)
}

// alike ignores what writers do not know.
var alike = cmpopts.IgnoreFields(subscriptions.State{}, "Number", "At", "Baseline", "WasBearing")

// wantLived compares the histories of a source with lives, whose first states are baselines.
func wantLived(t *testing.T, source subscriptions.Source, lives life, limits *rand.Rand) {
	t.Helper()
	for id, states := range lives {
		newestFirst := slices.Clone(states)
		slices.Reverse(newestFirst)
		want := subscriptions.Events(newestFirst, true)
		got := happened(t, source, 1, id, 1+limits.IntN(9))
		if diff := cmp.Diff(want, got, alike, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the history of subscription %d of store 1 (-lived +got):\n%s", id, diff)
		}
		for i := 1; i < len(got); i++ {
			assert.That(t, !got[i].To.At.After(got[i-1].To.At), "subscription %d: event %d is newer than the one before", id, i)
		}
	}
}

// What was created, changed, deleted and created again is what the history says.
func TestHistory_OfMemoryIsWhatHappened(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	m, clock, lives := subscriptions.NewMemory(nil, nil), now, life{}
	m.Now = func() time.Time { return clock }
	for range 2000 {
		clock = clock.Add(time.Minute)
		id := 1 + random.Int64N(8)
		s, err := m.Get(t.Context(), 1, id, locale.En)
		if err != nil {
			s = &subscriptions.Subscription{ID: id, StoreID: 1, Status: subscriptions.Trialing, Price: 100, Currency: "SAR"}
		}
		switch random.IntN(9) {
		case 0:
			m.Delete(1, id, clock)
			if err == nil {
				lives.add(id, subscriptions.State{Deleted: true})
			}
			continue
		case 1:
			s.Status = subscriptions.Statuses[random.IntN(6)]
		case 2:
			s.Variant.ID = random.Int64N(3)
		case 3:
			s.Price, s.Currency = 100+s.Price%200, []string{"SAR", "USD"}[random.IntN(2)]
		case 4:
			s.CancelAtPeriodEnd = !s.CancelAtPeriodEnd
		case 5:
			s.Card = []*subscriptions.Card{nil, {LastFour: "4242", Scheme: "visa"}, {LastFour: "4242", Scheme: "mada"}}[random.IntN(3)]
		case 6:
			s.PeriodStart, s.PeriodEnd = s.PeriodEnd, clock
		case 7:
			s.OrderID++
		}
		m.Put(*s)
		lives.add(id, subscriptions.State{
			Status: s.Status, VariantID: s.Variant.ID, Price: s.Price, Currency: s.Currency,
			CancelAtPeriodEnd: s.CancelAtPeriodEnd, Card: s.Card, PeriodStart: s.PeriodStart, PeriodEnd: s.PeriodEnd,
		})
	}
	wantLived(t, m, lives, random)
}

// The same for Postgres, with transactions that overlap, and some that are rolled back. A writer
// notes what a subscription is while it has it locked.
func TestHistory_OfPostgresIsWhatHappened(t *testing.T) {
	t.Parallel()
	for name, migrated := range map[string]func(t *testing.T) *pgxpool.Pool{
		"plain":       func(t *testing.T) *pgxpool.Pool { return ephemeral.MigratedPool(t) },
		"partitioned": func(t *testing.T) *pgxpool.Pool { return planningOnce(t, partitioned(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := migrated(t)
			fill(t, pool, data{sample.Customers(), sampleData().all[:1]})
			exec(t, pool, notes)
			var writers sync.WaitGroup
			for writer := range uint64(3) {
				writers.Go(func() {
					random := rand.New(rand.NewPCG(writer, uint64(time.Now().UnixNano())))
					for range 100 {
						if err := write(t.Context(), pool, random); err != nil {
							t.Error(err)
						}
					}
				})
			}
			writers.Wait()
			lives := life{}
			rows, _ := pool.Query(t.Context(), `SELECT id, status IS NULL, coalesce(status, ''), coalesce(variant_id, 0), coalesce(price_amount, 0), coalesce(currency, ''),
				coalesce(duration, ''), coalesce(cancel_at_period_end, false), coalesce(last_four, ''), coalesce(scheme, ''),
				current_period_start, current_period_end FROM notes ORDER BY place`)
			_, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (_ struct{}, err error) {
				var s subscriptions.State
				var id int64
				var card subscriptions.Card
				var start, end *time.Time
				err = row.Scan(&id, &s.Deleted, (*string)(&s.Status), &s.VariantID, (*int64)(&s.Price), &s.Currency,
					(*string)(&s.Duration), &s.CancelAtPeriodEnd, &card.LastFour, &card.Scheme, &start, &end)
				if card.Scheme != "" {
					s.Card = &card
				}
				if start != nil {
					s.PeriodStart, s.PeriodEnd = *start, *end
				}
				lives.add(id, s)
				return struct{}{}, err
			})
			assert.NoError(t, err)
			assert.Require(t, len(lives) == subscribed, "%d of %d subscriptions were written", len(lives), subscribed)
			wantLived(t, patient(pool), lives, rand.New(rand.NewPCG(1, 2)))
		})
	}
}

// subscribed is the number of subscriptions that the writers of a test share.
const subscribed = 6

const notes = `
	UPDATE subscriptions SET scheduled_variant_id = NULL, canceled_at = now();
	INSERT INTO saved_cards (store_id, id, customer_id, last_four, scheme) VALUES
		(1, 1, 1001, '1111', 'visa'), (1, 2, 1001, '1111', 'visa'), (1, 3, 1001, '2222', 'mada');
	CREATE TABLE notes (place bigint GENERATED ALWAYS AS IDENTITY, id bigint, status text, variant_id bigint, price_amount bigint, currency text,
		duration text, cancel_at_period_end boolean, last_four text, scheme text, current_period_start timestamptz, current_period_end timestamptz)`

const note = `
	INSERT INTO notes (id, status, variant_id, price_amount, currency, duration, cancel_at_period_end, last_four, scheme, current_period_start, current_period_end)
	SELECT i, status, variant_id, price_amount, currency, duration, cancel_at_period_end, last_four, scheme, current_period_start, current_period_end
	FROM unnest($1::bigint[]) i LEFT JOIN subscriptions s ON s.store_id = 1 AND s.id = i
		LEFT JOIN saved_cards c ON c.store_id = 1 AND c.id = s.saved_card_id`

// changes are statements, of which $1 is an ID and $2 a number up to 9.
var changes = []string{
	`INSERT INTO subscriptions SELECT (jsonb_populate_record(s, jsonb_build_object('id', $1::bigint, 'order_id', 1 + $2::int))).*
		FROM subscriptions s WHERE id = 5001 ON CONFLICT DO NOTHING`,
	"UPDATE subscriptions SET status = (ARRAY['active', 'canceled', 'expired'])[1 + $2::int % 3] WHERE id = $1",
	"UPDATE subscriptions SET price_amount = $2 % 3, currency = (ARRAY['SAR', 'USD'])[1 + $2::int % 2] WHERE id = $1",
	"UPDATE subscriptions SET duration = (ARRAY['monthly', 'annually'])[1 + $2::int % 2], cancel_at_period_end = $2 > 5 WHERE id = $1",
	"UPDATE subscriptions SET variant_id = (SELECT id FROM plans WHERE store_id = 1 ORDER BY id OFFSET $2 % 2 LIMIT 1) WHERE id = $1",
	"UPDATE subscriptions SET current_period_end = current_period_end + interval '1 day' * $2::int WHERE id = $1",
	"UPDATE subscriptions SET saved_card_id = nullif($2 % 4, 0) WHERE id = $1",
	"UPDATE subscriptions SET saved_card_id = nullif($2 % 4, 0), status = 'active' WHERE id = $1",
	"UPDATE subscriptions SET order_id = 1 + $2 WHERE id = $1",
	"DELETE FROM subscriptions WHERE id = $1 AND $2 < 5",
	moves, recards,
}

const (
	moves   = "UPDATE subscriptions SET id = 1 + $2 % 6 WHERE id = $1"
	recards = "UPDATE saved_cards SET last_four = '000' || $2::int WHERE id = 3 AND $1 > 0 AND last_four <> '000' || $2::int"
)

// write runs a transaction with some changes, and may roll it back. One that fails because of another
// one is rolled back, too.
func write(ctx context.Context, pool *pgxpool.Pool, random *rand.Rand) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after Commit
	_, err = tx.Exec(ctx, "SET LOCAL deadlock_timeout = '10ms'")
	for range 1 + random.IntN(3) {
		change, id, n := changes[random.IntN(len(changes))], 1+random.Int64N(subscribed), random.Int64N(10)
		var done pgconn.CommandTag
		if err == nil {
			done, err = tx.Exec(ctx, change, id, n)
		}
		if err != nil || done.RowsAffected() == 0 {
			continue
		}
		changed := []int64{id}
		switch change {
		case moves:
			changed = append(changed, 1+n%6)
		case recards:
			err = tx.QueryRow(ctx, "SELECT coalesce(array_agg(id), '{}') FROM subscriptions WHERE saved_card_id = 3").Scan(&changed)
		}
		if err == nil {
			_, err = tx.Exec(ctx, note, changed)
		}
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && (refused.Code == "40P01" || refused.Code == "23505"): // deadlock, unique_violation
		return nil
	case err != nil:
		return fmt.Errorf("write: %w", err)
	case random.IntN(4) == 0:
		return nil
	}
	return tx.Commit(ctx)
}
