package postgres

import (
	"errors"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"commerce/subscriptions"
)

// columns are the columns of all statements, in the order of row.columns. Texts that are too long
// to be shown are truncated just above their limit. $2 is the language of the product's name.
const columns = `
	s.id, s.customer_id, s.status, coalesce(left(s.external_customer_id, 256), ''),
	s.starts_at, s.ends_at, s.current_period_start, s.current_period_end, s.trial_ends_at,
	s.cancel_at_period_end, s.canceled_at, s.paused_at, coalesce(s.paused_remaining_days, 0),
	s.next_retry_at, s.grace_ends_at, s.duration, s.order_id, s.price_amount, s.currency,
	s.product_id, coalesce(p.names ->> $2::text, p.name), p.slug, p.type, s.variant_id, v.duration, v.price,
	coalesce(c.last_four, ''), coalesce(c.scheme, ''), left(s.metadata::text, 16385), s.created_at, s.updated_at`

// joins compare each store_id with $1, the store, instead of with each other's. In a database
// that is sharded by store, each table is then read on one shard.
const joins = `
	JOIN products p ON p.store_id = $1 AND p.id = s.product_id
	JOIN plans v ON v.store_id = $1 AND v.id = s.variant_id
	LEFT JOIN saved_cards c ON c.store_id = $1 AND c.id = s.saved_card_id`

// fullColumns are the columns of a single subscription, from the tables of fullJoins.
const fullColumns = columns + `, coalesce(n.id, 0), coalesce(n.duration, ''), coalesce(n.price, 0), coalesce(s.cancellation_reason, '')`

const fullJoins = joins + `
	LEFT JOIN plans n ON n.store_id = $1 AND n.id = s.scheduled_variant_id`

const getSQL = "/* subscription */ SELECT" + fullColumns + `
	FROM subscriptions s` + fullJoins + `
	WHERE s.store_id = $1 AND s.id = $3`

// inOrderSQL reads the given subscriptions, in their order.
const inOrderSQL = "/* changed_subscriptions */ SELECT" + fullColumns + `
	FROM unnest($3::bigint[]) WITH ORDINALITY page (id, place)
	JOIN subscriptions s ON s.store_id = $1 AND s.id = page.id` + fullJoins + `
	ORDER BY page.place`

// row is the destination of each row of a result.
type row struct {
	subscriptions.Subscription
	card      subscriptions.Card    // zero for none
	scheduled subscriptions.Variant // zero for none
	columns   []any                 // the destinations of the columns, in their order
}

func newRow(store int64) *row {
	r := &row{Subscription: subscriptions.Subscription{StoreID: store}}
	r.columns = []any{
		&r.ID, &r.CustomerID, (*Text)(&r.Status), (*Text)(&r.ExternalCustomerID),
		(*Instant)(&r.StartsAt), (*Instant)(&r.EndsAt), (*Instant)(&r.PeriodStart), (*Instant)(&r.PeriodEnd), (*Instant)(&r.TrialEndsAt),
		&r.CancelAtPeriodEnd, (*Instant)(&r.CanceledAt), (*Instant)(&r.PausedAt), &r.PausedRemainingDays,
		(*Instant)(&r.NextRetryAt), (*Instant)(&r.GraceEndsAt),
		(*Text)(&r.Duration), &r.OrderID, (*int64)(&r.Price), (*Text)(&r.Currency),
		&r.Product.ID, (*Text)(&r.Product.Name.Own), (*Text)(&r.Product.Slug), (*Text)(&r.Product.Type),
		&r.Variant.ID, (*Text)(&r.Variant.Duration), (*int64)(&r.Variant.Price),
		(*Text)(&r.card.LastFour), (*Text)(&r.card.Scheme), &r.Metadata, (*Instant)(&r.CreatedAt), (*Instant)(&r.UpdatedAt),
	}
	return r
}

// full makes r the destination of fullColumns.
func (r *row) full() *row {
	r.columns = append(r.columns, &r.scheduled.ID, (*Text)(&r.scheduled.Duration), (*int64)(&r.scheduled.Price), (*Text)(&r.CancellationReason))
	return r
}

// subscription returns the one of the latest row.
func (r *row) subscription() subscriptions.Subscription {
	s := r.Subscription
	if r.card.LastFour != "" {
		s.Card = new(r.card)
	}
	if r.scheduled.Duration != "" {
		s.Scheduled = new(r.scheduled)
	}
	return s
}

// maxMetadata is the maximum size in bytes. Only rows that were written before the schema had
// this bound, and those of dates and of external IDs, have values beyond them.
const maxMetadata = 16 * 1024

// bound removes texts that cannot be shown, and reports whether anything is not shown as it is stored.
func bound(s *subscriptions.Subscription) (changed bool) {
	for _, at := range [...]time.Time{
		s.StartsAt, s.EndsAt, s.PeriodStart, s.PeriodEnd, s.TrialEndsAt, s.CanceledAt,
		s.PausedAt, s.NextRetryAt, s.GraceEndsAt, s.CreatedAt, s.UpdatedAt,
	} {
		changed = changed || !subscriptions.Shown(at).Equal(at)
	}
	if len(s.ExternalCustomerID) > subscriptions.MaxExternalCustomer && utf8.RuneCountInString(s.ExternalCustomerID) > subscriptions.MaxExternalCustomer {
		s.ExternalCustomerID, changed = "", true
	}
	if len(s.Metadata) > maxMetadata {
		s.Metadata, changed = nil, true
	}
	return changed
}

// Text reads a column that is not null. If the value equals the previous row's, as it
// usually does, it reuses that string.
type Text string

func (t *Text) ScanBytes(b []byte) error {
	if b == nil {
		return errNull
	}
	if string(*t) != string(b) {
		*t = Text(b)
	}
	return nil
}

var errNull = errors.New("null in a column that must not be null")

// Infinite times stand for those of Postgres. It can store no other time before or after them.
var (
	infinitelyEarly = time.Date(-4713, 11, 23, 0, 0, 0, 0, time.UTC)
	infinitelyLate  = time.Date(294277, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Instant is a time in Postgres. It reads null as the zero time.
type Instant time.Time

func (i *Instant) ScanTimestamptz(v pgtype.Timestamptz) error {
	switch v.InfinityModifier {
	case pgtype.Infinity:
		*i = Instant(infinitelyLate)
	case pgtype.NegativeInfinity:
		*i = Instant(infinitelyEarly)
	default:
		*i = Instant(v.Time)
	}
	return nil
}

func (i Instant) TimestamptzValue() (pgtype.Timestamptz, error) {
	v := pgtype.Timestamptz{Time: time.Time(i), Valid: true}
	switch {
	case v.Time.Equal(infinitelyLate):
		v.InfinityModifier = pgtype.Infinity
	case v.Time.Equal(infinitelyEarly):
		v.InfinityModifier = pgtype.NegativeInfinity
	}
	return v, nil
}
