package history

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/recorded"
)

// ofEvents is what cursors of the events of a store are for. Events are in the order of their transactions, then of the
// states, then of Kinds. The ID of a cursor has the number of the last event's state, and the index of its kind, or
// wholeState after the last event of the state.
const ofEvents recorded.Kind = "events cursor"

const (
	kindBits   = 3
	wholeState = 1<<kindBits - 1
)

// StoreQuery asks for the events of a store after a cursor.
type StoreQuery struct {
	After recorded.Cursor
	Limit int // maximum number of events, at least 1
}

// Feed has events of a store in the order of their transactions. Those of one subscription can be in another order than
// they happened in, if transactions overlapped.
type Feed struct {
	Events []StoreEvent
	Next   recorded.Cursor
	More   bool // whether more events follow now
}

// StoreEvent is an event of one of a store's subscriptions.
type StoreEvent struct {
	SubscriptionID int64
	Event
}

// errEventsExpired is for a cursor after which events were folded, or of another history of the database.
var errEventsExpired = problem.New(problem.CursorExpired, "after", locale.Text{
	locale.En: "The events after this cursor are no longer known. Start again without after.",
	locale.Ar: "لم تعد الأحداث بعد هذه القيمة معروفة. ابدأ من جديد دون after.",
})

// recordedState is a state, with the one before it.
type recordedState struct {
	State
	transaction    uint64
	subscriptionID int64
	before         *State // nil: there is none
}

// take adds the events of the next states, which is all of them unless more is set, until there are enough. It returns the place of
// the last one.
func (f *Feed) take(q StoreQuery, states []recordedState, more bool) (last recorded.Change) {
	for i := range states {
		s := &states[i]
		newestFirst := []State{s.State}
		if s.before != nil {
			newestFirst = append(newestFirst, *s.before)
		}
		for _, e := range Events(newestFirst, s.before == nil) {
			at := recorded.Change{Transaction: s.transaction, ID: s.Number<<kindBits | int64(slices.Index(Kinds[:], e.Kind))}
			if at.Compare(q.After.Change) <= 0 {
				continue
			}
			if len(f.Events) == q.Limit {
				f.More = true
				return last
			}
			f.Events = append(f.Events, StoreEvent{s.subscriptionID, e})
			last = at
		}
		last = recorded.Change{Transaction: s.transaction, ID: s.Number<<kindBits | wholeState}
	}
	f.More = more
	return last
}

// The states of a store that have events after a cursor that may be read, as in feed. The arguments are the store, and
// the transaction and the ID of the cursor.
const readableStates = `FROM subscription_states
	WHERE store_id = $1 AND NOT first AND recorded_in < pg_snapshot_xmin(pg_current_snapshot())
		AND (recorded_in, number) > ($2, ($3::bigint >> 3) - CASE WHEN $3 & 7 = 7 THEN 0 ELSE 1 END)`

// statesSQL reads the next states of a store, with the one before each, and the card of that one only if the card changed.
// The number of rows is a literal for the planner, as in changes.
func statesSQL(rows int) string {
	return `/* events */
	SELECT page.recorded_in, page.subscription_id, ` + columns("page", "page") + `, before.number IS NOT NULL, ` + columns("before", "known") + `
	FROM (SELECT * ` + readableStates + ` ORDER BY recorded_in, number LIMIT ` + strconv.Itoa(rows) + `) page
		LEFT JOIN LATERAL (SELECT * FROM subscription_states s
			WHERE s.store_id = $1 AND s.subscription_id = page.subscription_id AND s.number < page.number ORDER BY s.number DESC LIMIT 1) before ON true
		LEFT JOIN LATERAL (SELECT s.card_last_four, s.card_scheme FROM subscription_states s
			WHERE s.store_id = $1 AND s.subscription_id = page.subscription_id AND s.number < page.number
				AND s.card_last_four IS NOT NULL AND page.card_last_four IS NOT NULL ORDER BY s.number DESC LIMIT 1) known ON true
	ORDER BY page.recorded_in, page.number`
}

// latestEventsSQL is for recorded.Follower.Latest.
const latestEventsSQL = `/* events_latest */
	SELECT reader.store_id, latest.recorded_in, latest.number << 3 | 7
	FROM unnest($1::bigint[], $2::xid8[], $3::bigint[]) reader (store_id, transaction, id)
	CROSS JOIN LATERAL (
		SELECT s.recorded_in, s.number FROM subscription_states s
		WHERE s.store_id = reader.store_id AND NOT s.first AND (s.recorded_in, s.number) > (reader.transaction, reader.id >> 3)
			AND s.recorded_in < pg_snapshot_xmin(pg_current_snapshot())
		ORDER BY s.recorded_in DESC, s.number DESC LIMIT 1
	) latest`

// foldedStates is for recorded.ReadLineage: the last state that was folded, with all of its events. A fold that ended before a reader started
// took nothing from it.
const foldedStates = "SELECT recorded_in AS transaction, number << 3 | 7 AS id, folded_in AS pruned_in FROM folded_states WHERE store_id = $1"

// EventNews is that of a recorded.Waiter.
func (p *Postgres) EventNews(ctx context.Context, after map[int64]recorded.Change) (map[int64]recorded.Change, error) {
	return p.follower.Latest(ctx, latestEventsSQL, after)
}

// Events returns what happened in a store after a cursor. The error is that of an expired cursor if a reader with it
// could miss something, and recorded.ErrNone if nothing is recorded.
func (p *Postgres) Events(ctx context.Context, store int64, q StoreQuery) (found Feed, err error) {
	found.Next, found.More, err = p.follower.Follow(ctx, store, q.After, recorded.Reading{
		Tables: "folded_states, ONLY subscription_states",
		Page: func(ctx context.Context, conn *pgxpool.Conn, system int64) (known *recorded.Lineage, last recorded.Change, more bool, err error) {
			if known, err = recorded.ReadLineage(ctx, conn, foldedStates, store, q.After.Timeline, system); err != nil {
				return nil, last, false, err
			}
			rows := recorded.RowsFor(q.Limit) // almost every state has an event
			states, err := nextStates(ctx, conn, store, q, rows)
			found = Feed{}
			last = found.take(q, states, len(states) == rows)
			return known, last, found.More, err
		},
	})
	return found.after(q, err)
}

// after returns the events that were found, or why there are none.
func (f Feed) after(q StoreQuery, err error) (Feed, error) {
	switch {
	case errors.Is(err, recorded.ErrCursorExpired):
		return Feed{}, errEventsExpired
	case err != nil:
		return Feed{}, err
	case f.Next == q.After:
		return Feed{Next: q.After}, nil
	}
	return f, nil
}

func nextStates(ctx context.Context, conn *pgxpool.Conn, store int64, q StoreQuery, limit int) (all []recordedState, err error) {
	var next recordedState
	var s, before row
	var known bool
	rows, _ := conn.Query(ctx, statesSQL(limit), store, q.After.Transaction, q.After.ID) // the rows have the error
	into := append([]any{&next.transaction, &next.subscriptionID}, s.into()...)
	into = append(append(into, &known), before.into()...)
	_, err = pgx.ForEachRow(rows, into, func() error {
		read := next
		read.State = s.state()
		if known {
			read.before = new(before.state())
		}
		all = append(all, read)
		return nil
	})
	return all, err
}

// columns returns the columns of a state in a table, with the card in another one. All can be null.
func columns(of, card string) string {
	return strings.NewReplacer("s.", of+".", "c.", card+".").Replace(`coalesce(s.number, 0), s.recorded_at, coalesce(s.first, false),
		coalesce(s.was_bearing, false), s.status IS NULL, coalesce(s.status, ''), coalesce(s.variant_id, 0), coalesce(s.price_amount, 0),
		coalesce(s.currency, ''), coalesce(s.duration, ''), coalesce(s.cancel_at_period_end, false), s.period_start, s.period_end,
		coalesce(s.cancellation_reason, ''), coalesce(c.card_last_four, ''), coalesce(c.card_scheme, '')`)
}

// row is the destination of columns.
type row struct {
	State
	card subscriptions.Card // zero for none
}

func (r *row) into() []any {
	return []any{
		&r.Number, (*postgres.Instant)(&r.At), &r.Baseline, &r.WasBearing, &r.Deleted, (*postgres.Text)(&r.Status), &r.VariantID,
		(*int64)(&r.Price), (*postgres.Text)(&r.Currency), (*postgres.Text)(&r.Duration), &r.CancelAtPeriodEnd,
		(*postgres.Instant)(&r.PeriodStart), (*postgres.Instant)(&r.PeriodEnd), (*postgres.Text)(&r.CancellationReason),
		(*postgres.Text)(&r.card.LastFour), (*postgres.Text)(&r.card.Scheme),
	}
}

func (r *row) state() State {
	s := r.State
	if r.card.LastFour != "" {
		s.Card = new(r.card)
	}
	return s
}
