package history_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
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
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/figures"
	"commerce/subscriptions/history"
	"commerce/subscriptions/suite"
)

// happened reads a whole history in pages, the newest event first.
func happened(t *testing.T, source suite.Source, store, id int64, limit int) (all []history.Event) {
	t.Helper()
	for q := (history.Query{Limit: limit}); ; {
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
		q.After, ok = history.ParsePlace(text, store, id)
		assert.Require(t, ok, "%s is no place", text)
	}
}

// A life is what subscriptions of store 1 were, by ID, as a writer of the test saw it.
type life map[int64][]history.State

// add adds a state unless nothing happened. A deletion removes the cards.
func (l life) add(id int64, s history.State) {
	all := l[id]
	if len(all) > 0 && !all[len(all)-1].Deleted {
		s.WasBearing = false // it was there
	}
	if n := len(all); n > 0 && cmp.Equal(all[n-1], s, alike) || n == 0 && s.Deleted {
		return
	}
	if s.Deleted {
		l.removeCards(id)
	}
	l[id] = append(all, s)
}

func (l life) removeCards(id int64) {
	for i := range l[id] {
		l[id][i].Card = nil
	}
}

// alike ignores what writers do not know.
var alike = cmpopts.IgnoreFields(history.State{}, "Number", "At", "Baseline", "WasBearing")

// wantLived compares the histories of a source with lives, whose first states are baselines.
func wantLived(t *testing.T, source suite.Source, lives life, limits *rand.Rand) {
	t.Helper()
	for id, states := range lives {
		newestFirst := slices.Clone(states)
		slices.Reverse(newestFirst)
		want := history.Events(newestFirst, true)
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
	m, clock, lives := suite.NewMemory(nil, nil), suite.Now, life{}
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
				lives.add(id, history.State{Deleted: true})
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
		lives.add(id, history.State{
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
		"plain": func(t *testing.T) *pgxpool.Pool { return ephemeral.MigratedPool(t) },
		"partitioned": func(t *testing.T) *pgxpool.Pool { // writers plan for the values of each execution, too
			return ephemeral.OpenPool(t, suite.Partitioned(t), connect.PostgresConfig{Writable: true, MaxConns: 4, StatementTimeout: -1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := migrated(t)
			suite.Fill(t, pool, suite.Data{Customers: sample.Customers(), All: suite.SampleData().All[:1]})
			suite.Exec(t, pool, notes)
			reader := eventReader{Bundle: suite.NewBundle(suite.Patient(pool))}
			var writers, readers sync.WaitGroup
			stop := make(chan struct{})
			readers.Go(func() {
				for limit := 1; ; limit = 1 + limit%7 {
					select {
					case <-stop:
						return
					case <-time.After(5 * time.Millisecond):
						reader.read(t, limit)
					}
				}
			})
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
			writers.Go(func() { // finds nothing, since nothing is missed
				for range 20 {
					if _, err := pool.Exec(t.Context(), "SELECT record_missed_states()"); err != nil {
						t.Error(err)
					}
				}
			})
			writers.Wait()
			close(stop)
			readers.Wait()
			ephemeral.Settle(t, pool)
			reader.read(t, 1000)
			reader.wantHistories(t, 1, 2, 3, 4, 5, 6)
			lives := life{}
			rows, _ := pool.Query(t.Context(), `SELECT id, coalesce(imported, false), status IS NULL, coalesce(status, ''), coalesce(variant_id, 0), coalesce(price_amount, 0), coalesce(currency, ''),
				coalesce(duration, ''), coalesce(cancel_at_period_end, false), coalesce(last_four, ''), coalesce(scheme, ''),
				current_period_start, current_period_end FROM notes ORDER BY place`)
			_, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (_ struct{}, err error) {
				s := history.State{At: time.Now()}
				var id int64
				var card subscriptions.Card
				var start, end *time.Time
				err = row.Scan(&id, &s.WasBearing, &s.Deleted, (*string)(&s.Status), &s.VariantID, (*int64)(&s.Price), &s.Currency,
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
			wantLived(t, suite.Patient(pool), lives, rand.New(rand.NewPCG(1, 2)))
			wantMeasured(t, suite.Patient(pool), lives)
		})
	}
}

// wantMeasured compares the metrics of a source with those of lives, and of the subscription that they were copied from.
func wantMeasured(t *testing.T, source suite.Source, lives life) {
	t.Helper()
	lives[5001] = []history.State{history.StateOf(&suite.SampleData().All[0], time.Now())}
	want := assert.Must(figures.Measure(assert.Must(figures.Movements(slices.Collect(maps.Values(lives))))(t), time.Now()))(t)
	got := assert.Must(figures.Measure(assert.Must(source.Movements(t.Context(), 1))(t), time.Now()))(t)
	assert.Equal(t, got.Series, want.Series, "metrics")
}

// subscribed is the number of subscriptions that the writers of a test share.
const subscribed = 6

const notes = `
	UPDATE subscriptions SET scheduled_variant_id = NULL, canceled_at = now();
	INSERT INTO saved_cards (store_id, id, customer_id, last_four, scheme) VALUES
		(1, 1, 1001, '1111', 'visa'), (1, 2, 1001, '1111', 'visa'), (1, 3, 1001, '2222', 'mada');
	CREATE TABLE notes (place bigint GENERATED ALWAYS AS IDENTITY, id bigint, imported boolean, status text, variant_id bigint, price_amount bigint, currency text,
		duration text, cancel_at_period_end boolean, last_four text, scheme text, current_period_start timestamptz, current_period_end timestamptz)`

const note = `
	INSERT INTO notes (id, imported, status, variant_id, price_amount, currency, duration, cancel_at_period_end, last_four, scheme, current_period_start, current_period_end)
	SELECT i, imported, status, variant_id, price_amount, currency, duration, cancel_at_period_end, last_four, scheme, current_period_start, current_period_end
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
	"DELETE FROM subscriptions WHERE id = $1 AND $2 < 5", moves, recards,
}

const (
	moves   = "UPDATE subscriptions SET id = 1 + $2 % 6 WHERE id = $1"
	recards = "UPDATE saved_cards SET last_four = '000' || $2::int WHERE id = 3 AND $1 > 0 AND last_four <> '000' || $2::int"
)

// write runs a transaction with some changes, which may be an import, notes what it leaves, and may roll it back. One
// that fails because of another one is rolled back, too.
func write(ctx context.Context, pool *pgxpool.Pool, random *rand.Rand) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after Commit
	_, err = tx.Exec(ctx, fmt.Sprintf("SET LOCAL deadlock_timeout = '10ms'; SET LOCAL commerce.import = %t", random.IntN(2) == 0))
	var changed []int64
	for range 1 + random.IntN(5) {
		var more []int64
		if err == nil {
			more, err = change(ctx, tx, random)
		}
		changed = append(changed, more...)
	}
	if err == nil {
		slices.Sort(changed)
		_, err = tx.Exec(ctx, note, slices.Compact(changed))
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

// change makes one change, and returns which subscriptions it concerns.
func change(ctx context.Context, tx pgx.Tx, random *rand.Rand) (changed []int64, err error) {
	sql, id, n := changes[random.IntN(len(changes))], 1+random.Int64N(subscribed), random.Int64N(10)
	done, err := tx.Exec(ctx, sql, id, n)
	switch {
	case err != nil || done.RowsAffected() == 0:
		return nil, err
	case sql == moves:
		return []int64{id, 1 + n%6}, nil
	case sql == recards:
		err = tx.QueryRow(ctx, "SELECT coalesce(array_agg(id), '{}') FROM subscriptions WHERE saved_card_id = 3").Scan(&changed)
		return changed, err
	}
	return []int64{id}, nil
}

// pastOf returns a subscription's states at hours before now, the oldest first. Each changes the one before.
func pastOf(id int64, before time.Time, changes map[int]func(*history.State)) history.Past {
	s := history.State{
		Status: subscriptions.Active, VariantID: 41, Price: 2050, Currency: "SAR", Duration: period.Monthly,
		Card: &subscriptions.Card{LastFour: "4242", Scheme: "visa"}, PeriodStart: before.AddDate(0, -1, 0), PeriodEnd: before,
	}
	p := history.Past{StoreID: 1, ID: id}
	for _, hours := range slices.Backward(slices.Sorted(maps.Keys(changes))) {
		s.At, s.Baseline, s.WasBearing = before.Add(-time.Duration(hours)*time.Hour), false, false
		changes[hours](&s)
		p.States = append(p.States, s)
	}
	return p
}

// remembering returns sources that also have a past.
func remembering(past ...history.Past) map[string]func(t *testing.T) suite.Source {
	return map[string]func(t *testing.T) suite.Source{
		"memory": func(*testing.T) suite.Source {
			m := suite.NewMemory(nil, suite.SampleData().All)
			m.Record(past...)
			return m
		},
		"postgres": func(t *testing.T) suite.Source { return suite.Patient(writePast(t, past...)) },
	}
}

func writePast(t *testing.T, past ...history.Past) *pgxpool.Pool {
	t.Helper()
	pool := suite.Filled(t, suite.SampleData())
	assert.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return sample.WritePast(t.Context(), tx, past) }))
	return pool
}

func TestHistory_MatchesGoldenFile(t *testing.T) {
	t.Parallel()
	past := pastOf(5001, suite.Now, map[int]func(s *history.State){
		9: func(*history.State) {},
		8: func(s *history.State) {
			s.Status, s.CancelAtPeriodEnd, s.CancellationReason = subscriptions.PastDue, true, "Too expensive"
		},
		7: func(s *history.State) { s.Card = &subscriptions.Card{LastFour: "1111", Scheme: "mada"} },
		6: func(s *history.State) {
			s.Status, s.CancelAtPeriodEnd, s.CancellationReason, s.PeriodStart, s.PeriodEnd = subscriptions.Active, false, "", s.PeriodEnd, s.PeriodEnd.AddDate(0, 1, 0)
		},
		5: func(s *history.State) {
			s.VariantID, s.Price, s.Currency, s.Duration = 42, 20_000, "KWD", period.Annually
		},
		4: func(s *history.State) { s.Card = nil },
		3: func(s *history.State) { *s = history.State{At: s.At, Deleted: true} },
		2: func(s *history.State) {
			*s = history.State{At: s.At, Status: subscriptions.Trialing, VariantID: 41, Currency: "SAR", Duration: period.Monthly, PeriodStart: suite.Now, PeriodEnd: suite.Now}
		},
	})
	baseline := pastOf(5002, suite.Now, map[int]func(s *history.State){
		9: func(s *history.State) { s.Baseline = true },
		2: func(s *history.State) { s.Currency = "XYZ" },
		1: func(s *history.State) { s.Status = subscriptions.Expired },
	})
	for name, source := range remembering(past, baseline) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := suite.NewBundle(source(t))
			suite.Golden(t, "history", b, "/subscriptions/5001/history", "en")
			suite.Golden(t, "history.baseline", b, "/subscriptions/5002/history", "ar")
		})
	}
}

// A row that a transaction replaces is not deleted, so it keeps its cards, and nothing happens to it. But TRUNCATE
// removes cards at once.
func TestHistory_OfAReplacementIsThatOfItsRow(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.SixStates())
	const kept, again = "CREATE TEMPORARY TABLE kept ON COMMIT DROP AS SELECT * FROM subscriptions WHERE id = 2;", "INSERT INTO subscriptions SELECT * FROM kept;"
	want := []history.Kind{history.EventCreated}
	for _, step := range []struct {
		sql  string
		want []history.Kind
	}{
		{kept + "DELETE FROM subscriptions WHERE id = 2;" + again, nil},
		{"UPDATE saved_cards SET last_four = '9999'", []history.Kind{history.EventCard}},
		{"UPDATE subscriptions SET price_amount = price_amount + 1 WHERE id = 2", []history.Kind{history.EventPrice}},
		{kept + "DELETE FROM subscriptions WHERE id = 2;" + again, nil},
		{kept + "UPDATE kept SET price_amount = 1; DELETE FROM subscriptions WHERE id = 2;" + again, []history.Kind{history.EventPrice}},
		{"WITH gone AS (DELETE FROM subscriptions WHERE id = 2 RETURNING *) INSERT INTO subscriptions SELECT * FROM gone", nil},
		{kept + "WITH gone AS (UPDATE subscriptions SET id = 9 WHERE id = 2 RETURNING *) INSERT INTO subscriptions SELECT kept.* FROM kept, gone", nil},
		{kept + "DELETE FROM subscriptions WHERE id = 2;" + again + "DELETE FROM subscriptions WHERE id = 2;" + again, nil},
	} {
		assert.Must(pool.Exec(t.Context(), "BEGIN;"+step.sql+";COMMIT", pgx.QueryExecModeSimpleProtocol))(t)
		want = append(want, step.want...)
		var got []history.Kind
		for _, e := range slices.Backward(happened(t, suite.Patient(pool), 1, 2, 100)) {
			got = append(got, e.Kind)
		}
		assert.Equal(t, got, want, "events after %s", step.sql)
	}
	assert.Must(pool.Exec(t.Context(), "BEGIN;"+kept+"TRUNCATE subscriptions;"+again+"COMMIT", pgx.QueryExecModeSimpleProtocol))(t)
	newest := happened(t, suite.Patient(pool), 1, 2, 1)[0]
	assert.That(t, newest.Kind == history.EventCard && newest.From.Card == nil && newest.To.Card.LastFour == "9999", "after TRUNCATE: %+v", newest)
}

// A cancellation has the reason that its transaction left, whichever statement wrote it. A later one is no event.
func TestHistory_HasTheReasonOfACancellation(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.SampleData())
	m := suite.NewMemory(nil, suite.SampleData().All)
	for _, step := range []struct {
		sql string
		put func(*subscriptions.Subscription)
	}{
		{"cancel_at_period_end = true, cancellation_reason = 'a'", func(s *subscriptions.Subscription) { s.CancelAtPeriodEnd, s.CancellationReason = true, "a" }},
		{"cancellation_reason = 'b'", func(s *subscriptions.Subscription) { s.CancellationReason = "b" }},
		{"status = 'canceled', canceled_at = now()", func(s *subscriptions.Subscription) { s.Status = subscriptions.Canceled }},
		{"status = 'active', cancel_at_period_end = false, cancellation_reason = NULL", func(s *subscriptions.Subscription) {
			s.Status, s.CancelAtPeriodEnd, s.CancellationReason = subscriptions.Active, false, ""
		}},
		{
			"status = 'canceled' WHERE id = 5001; UPDATE subscriptions SET cancellation_reason = 'c' WHERE id = 5001; UPDATE subscriptions SET order_id = 7",
			func(s *subscriptions.Subscription) {
				s.Status, s.CancellationReason, s.OrderID = subscriptions.Canceled, "c", 7
			},
		},
	} {
		assert.Must(pool.Exec(t.Context(), "UPDATE subscriptions SET "+step.sql+" WHERE id = 5001", pgx.QueryExecModeSimpleProtocol))(t)
		s := assert.Must(m.Get(t.Context(), 1, 5001, locale.En))(t)
		step.put(s)
		m.Put(*s)
	}
	for _, source := range []suite.Source{m, suite.Patient(pool)} {
		var reasons []string
		for _, e := range happened(t, source, 1, 5001, 2) {
			if e.Cancels() {
				reasons = append(reasons, string(e.Kind)+" "+e.To.CancellationReason)
			}
		}
		assert.Equal(t, reasons, []string{"status c", "status b", "cancel_at_period_end a"}, "%T: cancellations", source)
	}
}

func TestHistory_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	suite.OnEach(t, suite.SampleData(), func(t *testing.T, b suite.Bundle) {
		own, others, negative := history.Place{State: 7}.Text(1, 5001), history.Place{State: 7}.Text(1, 5002), history.Place{State: -1}.Text(1, 5001)
		for query, want := range map[string][]string{
			"after=":                          {"after"},
			"after=" + others:                 {"after"},
			"after=" + own[:len(own)-1] + "A": {"after"},
			"after=" + own + "&after=" + own:  {"after"},
			"after=x&limit=101":               {"after", "limit"},
			"after=" + negative:               {"after"},
			"limit=0":                         {"limit"},
			"limit=+5":                        {"limit"},
			"limit=5&page=2":                  {"page"},
			"%zz":                             {"query"},
		} {
			b.Names(t, "/subscriptions/5001/history?"+query, want)
		}
		for _, place := range []string{own, history.Place{Kind: 1}.Text(1, 5001)} { // older ones than that may be folded
			assert.Equal(t, b.Do("/subscriptions/5001/history?limit=100&after="+place, 1, "en").Code, http.StatusOK, "a place of its own")
		}
		for path, store := range map[string]int64{
			"/subscriptions/5001/history": 2, "/subscriptions/404/history": 1, "/subscriptions/05001/history": 1, "/subscriptions/x/history": 1,
		} {
			assert.Equal(t, b.Refused(t, path, store).Code, "subscription_not_found", "%s of store %d", path, store)
		}
	})
}

// After a fold, the events of the last three years are the same, and no others are left.
func TestFold_KeepsTheEventsOfThreeYears(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, uint64(time.Now().UnixNano())))
	const day, histories = 24, 150
	cutoff := time.Now().Add(-history.KeepStates)
	var past []history.Past
	for id := range int64(histories) {
		changes := map[int]func(*history.State){}
		for range 1 + random.IntN(8) {
			status, price, deleted := subscriptions.Statuses[random.IntN(6)], money.Amount(random.IntN(3)), random.IntN(4) == 0
			card := []*subscriptions.Card{nil, {LastFour: "4242", Scheme: "visa"}}[random.IntN(2)]
			changes[day*random.IntN(6*365)+day/2] = func(s *history.State) {
				*s = history.State{At: s.At, Deleted: deleted}
				if !deleted {
					s.Status, s.Price, s.Card, s.Currency = status, price, card, "SAR"
				}
			}
		}
		past = append(past, pastOf(9001+id, time.Now(), changes))
	}
	pool := writePast(t, past...)
	source := suite.Patient(pool)
	wants := map[int64][]history.Event{}
	bearing := map[int64]bool{} // whether a baseline was, if there is one
	for _, p := range past {
		wants[p.ID] = slices.DeleteFunc(happened(t, source, 1, p.ID, 7), func(e history.Event) bool { return e.To.At.Before(cutoff) })
		last := p.States[len(p.States)-1]
		for _, s := range p.States {
			if s.At.Before(cutoff) && !(last.Deleted && last.At.Before(cutoff)) {
				bearing[p.ID] = bearing[p.ID] || s.Status == subscriptions.Active || s.Status == subscriptions.PastDue
			}
		}
	}
	var folds sync.WaitGroup
	var folded [2]int64
	for i := range folded {
		folds.Go(func() {
			var err error
			folded[i], err = history.Fold(t.Context(), pool)
			assert.Succeeds(t, err, "Fold")
		})
	}
	folds.Wait()
	_, err := history.Fold(t.Context(), pool) // what both have skipped
	assert.NoError(t, err)
	for id, want := range wants {
		diff := cmp.Diff(want, happened(t, source, 1, id, 7), alike, cmpopts.EquateEmpty())
		assert.That(t, diff == "", "the history of subscription %d (-before +after):\n%s", id, diff)
	}
	got := map[int64]bool{}
	rows, _ := pool.Query(t.Context(), "SELECT subscription_id, was_bearing FROM subscription_states WHERE first AND subscription_id > 9000")
	var id int64
	var was bool
	_, err = pgx.ForEachRow(rows, []any{&id, &was}, func() error { got[id] = was; return nil })
	assert.NoError(t, err)
	assert.Equal(t, got, bearing, "was_bearing of the baselines")
	again, err := history.Fold(t.Context(), pool)
	assert.That(t, err == nil && again == 0 && folded[0]+folded[1] > 0, "folded %v, and again %d: %v", folded, again, err)
}

// A fold gives the card of an older state to the one that it keeps.
func TestFold_LeavesNoCardOfASubscriptionThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, deletion := range []string{"DELETE FROM subscriptions WHERE store_id = 1 AND id = 5001", "TRUNCATE subscriptions"} {
		pool := writePast(t, pastOf(5001, time.Now(), map[int]func(s *history.State){
			50_000: func(*history.State) {},
			40_000: func(s *history.State) { s.Status = subscriptions.PastDue },
		}))
		suite.Exec(t, pool, `CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END';
			CREATE TRIGGER pause BEFORE UPDATE OF first ON subscription_states FOR EACH ROW EXECUTE FUNCTION pause();
			UPDATE subscription_states SET card_last_four = NULL, card_scheme = NULL WHERE subscription_id = 5001 AND status = 'past_due'`)
		holder := assert.Must(pool.Begin(t.Context()))(t)
		suite.Exec(t, holder, "SELECT pg_advisory_xact_lock(1)")
		var all sync.WaitGroup
		waiting := func(want int) {
			for n := 0; n < want; time.Sleep(time.Millisecond) {
				err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
					WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
				assert.NoError(t, err)
			}
		}
		all.Go(func() {
			_, err := history.Fold(t.Context(), pool)
			assert.Succeeds(t, err, "Fold")
		})
		waiting(1)
		all.Go(func() {
			_, err := pool.Exec(t.Context(), deletion)
			assert.Succeeds(t, err, "%s", deletion)
		})
		waiting(2)
		assert.NoError(t, holder.Commit(t.Context()))
		all.Wait()
		var cards int
		err := pool.QueryRow(t.Context(), "SELECT count(*) FROM subscription_states WHERE subscription_id = 5001 AND card_last_four IS NOT NULL").Scan(&cards)
		assert.That(t, err == nil && cards == 0, "after %s: %d states have a card, %v", deletion, cards, err)
	}
}

func TestMovements_NeverGoBackInTime(t *testing.T) {
	t.Parallel()
	ahead := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	past := pastOf(5001, ahead, map[int]func(s *history.State){
		3: func(s *history.State) { s.At, s.Currency = ahead, "KWD" },
		2: func(s *history.State) { s.At, s.Status = ahead.Add(-time.Second), subscriptions.Expired },
	})
	for name, source := range remembering(past) {
		var months []figures.Month
		for _, m := range assert.Must(source(t).Movements(t.Context(), 1))(t) {
			if m.From == "KWD" || m.To == "KWD" {
				months = append(months, m.Month)
			}
		}
		february := figures.MonthOf(ahead)
		assert.Equal(t, months, []figures.Month{february, february}, "%s: months", name)
	}
}
