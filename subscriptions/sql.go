package subscriptions

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"commerce/cart/money"
	"commerce/cart/period"
)

// columns are the columns of all statements, in the order of row.into. Texts that are
// too long to be shown are truncated just above their limit. $2 is the language of the
// product's name.
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

// scheduledColumns are the columns of a scheduledVariant.
const scheduledColumns = `, n.id, n.duration, n.price`

const scheduledJoin = `
	LEFT JOIN plans n ON n.store_id = $1 AND n.id = s.scheduled_variant_id`

const getSQL = "/* subscription */ SELECT" + columns + scheduledColumns + `
	FROM subscriptions s` + joins + scheduledJoin + `
	WHERE s.store_id = $1 AND s.id = $3`

// listSQL selects the rows of a page in a subquery, so that no plan joins first and limits
// afterwards. To skip rows, the subquery selects only IDs: skipping the rows of a thousand pages
// then only scans the index. The limit is a literal, since for a parameter a generic plan assumes
// a tenth of the store's rows and reads the whole table to join them. Each row is joined
// separately (LIMIT 1), because a generic plan assumes that every store has the average size,
// and would read all rows of a large one for a hash join.
//
// Postgres locks all partitions of a table for each time that a generic plan names it. So
// subscriptions are named twice only to skip rows.
func listSQL(store int64, q Query) (sql string, args []any) {
	arg := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	p := pageSQL{what: "*", of: "store_id = " + arg(store), order: "id DESC", arg: arg}
	arg(string(q.Language)) // for columns
	if q.Older != 0 {
		p.of += " AND id < " + arg(q.Older)
	}
	if q.Newer != 0 {
		p.of += " AND id > " + arg(q.Newer)
		p.order = "id"
	}
	from, offset := "(SELECT page.*) s"+joins, ""
	if q.Skip != 0 {
		p.what, offset = "id", " OFFSET "+arg(q.Skip)
		from = "subscriptions s" + joins + " WHERE s.store_id = $1 AND s.id = page.id"
	}
	var page string
	if q.Filter.byCustomer() {
		page = p.ofCustomers(q)
	} else {
		page = p.ofStore(q)
	}
	sql = "/* subscriptions */ SELECT shown.* FROM (" + page + " LIMIT " + strconv.Itoa(q.Limit) + offset + ") page" +
		" CROSS JOIN LATERAL (SELECT" + columns + " FROM " + from + " LIMIT 1) shown"
	return sql, args
}

// pageSQL is what the subqueries of a page have in common.
type pageSQL struct {
	what  string           // the columns to select
	of    string           // the condition that all rows meet
	order string           // of the rows
	arg   func(any) string // adds an argument and returns its name
}

// subscriptions selects rows that also meet more conditions, which begin with " AND ".
func (p pageSQL) subscriptions(conditions string) string {
	return "SELECT " + p.what + " FROM subscriptions WHERE " + p.of + conditions
}

// ofStore selects a store's subscriptions by what the subscriptions
// themselves have. The indexes with the status are ordered by ID only within one
// state, so each state has a branch, and Postgres merges the branches in order. States are
// literals, so that even a generic plan takes into account how rare they are. Branches have
// their own limit. Without it, Postgres plans each as if all of its rows were read, and
// sorts those of a large store.
func (p pageSQL) ofStore(q Query) string {
	f, ordered := q.Filter, " ORDER BY "+p.order
	if f.CallingCode != "" {
		p.of += " AND calling_code = " + p.arg(f.CallingCode)
	}
	switch {
	case f.ExternalCustomerID != "": // few rows
		return p.subscriptions(ofRowSQL(f, p.arg)) + ordered
	case f.Statuses == 0, f.Statuses == everyStatus:
		return p.subscriptions("") + ordered
	}
	branches := f.Statuses.names()
	for i, name := range branches {
		branches[i] = p.subscriptions(" AND status = '"+name+"'") + ordered
	}
	if len(branches) == 1 {
		return branches[0]
	}
	each := " LIMIT " + strconv.Itoa(q.Limit)
	if q.Skip != 0 {
		each = " LIMIT " + p.arg(q.Skip+q.Limit)
	}
	return "SELECT * FROM ((" + strings.Join(branches, each+") UNION ALL (") + each + ")) states" + ordered
}

// ofRowSQL returns the conditions for filters that match few rows anyway.
func ofRowSQL(f Filter, arg func(any) string) string {
	var conditions string
	if f.ExternalCustomerID != "" {
		// The length is the condition of the index.
		conditions += " AND length(external_customer_id) <= 255 AND external_customer_id = " + arg(f.ExternalCustomerID)
	}
	if f.Statuses != 0 {
		conditions += " AND status = ANY(" + arg(f.Statuses.names()) + ")"
	}
	return conditions
}

// ofCustomers selects the subscriptions of matching customers. There are
// few such customers. An index returns the newest of each in order; only the
// combination of several customers is sorted.
func (p pageSQL) ofCustomers(q Query) string {
	who := []string{"store_id = $1"}
	if q.Filter.Email != "" {
		who = append(who, folded("email")+" = "+folded(p.arg(q.Filter.Email)+"::text"))
	}
	if q.Filter.Phone != "" {
		phone, nationals := p.arg(string(q.Filter.Phone)), p.arg(q.Filter.Phone.Nationals())
		without := "ltrim(regexp_replace(" + phone + ", '^' || calling_code, ''), '0')"
		who = append(who,
			"(national_phone = ANY("+nationals+") OR uncoded_phone = ANY("+nationals+"))",
			"("+phone+" IN (national_phone, uncoded_phone) OR "+without+" IN (national_phone, uncoded_phone))")
	}
	if q.Filter.CallingCode != "" {
		who = append(who, "calling_code = "+p.arg(q.Filter.CallingCode))
	}
	each := p.arg(q.Skip + q.Limit)
	return "SELECT theirs.* FROM (SELECT id AS customer FROM customers WHERE " + strings.Join(who, " AND ") + ") whose" +
		" CROSS JOIN LATERAL (" + p.subscriptions(" AND customer_id = customer"+ofRowSQL(q.Filter, p.arg)) +
		" ORDER BY " + p.order + " LIMIT " + each + ") theirs ORDER BY " + p.order
}

// folded returns an SQL expression for an address in lower case, independent of the
// locale of the database. The index customers_by_email is on this expression.
func folded(address string) string {
	return "(lower(" + address + ` COLLATE "und-x-icu") COLLATE "C")`
}

// row is the destination of each row of a result.
type row struct {
	Subscription
	card Card
}

// into returns the destinations of the columns, in their order.
func (r *row) into() []any {
	return []any{
		&r.ID, &r.CustomerID, (*text)(&r.Status), (*text)(&r.ExternalCustomerID),
		(*instant)(&r.StartsAt), (*instant)(&r.EndsAt), (*instant)(&r.PeriodStart), (*instant)(&r.PeriodEnd), (*instant)(&r.TrialEndsAt),
		&r.CancelAtPeriodEnd, (*instant)(&r.CanceledAt), (*instant)(&r.PausedAt), &r.PausedRemainingDays,
		(*instant)(&r.NextRetryAt), (*instant)(&r.GraceEndsAt),
		(*text)(&r.Duration), &r.OrderID, (*int64)(&r.Price), (*text)(&r.Currency),
		&r.Product.ID, (*text)(&r.Product.Name.Own), (*text)(&r.Product.Slug), (*text)(&r.Product.Type),
		&r.Variant.ID, (*text)(&r.Variant.Duration), (*int64)(&r.Variant.Price),
		(*text)(&r.card.LastFour), (*text)(&r.card.Scheme), &r.Metadata, (*instant)(&r.CreatedAt), (*instant)(&r.UpdatedAt),
	}
}

// Only rows that were written before the schema had these bounds have longer values.
const (
	maxExternalCustomer = 255       // characters
	maxMetadata         = 16 * 1024 // bytes
)

// bound replaces what cannot be shown, and reports whether it replaced anything.
func (s *Subscription) bound() (changed bool) {
	for _, at := range [...]*time.Time{
		&s.StartsAt, &s.EndsAt, &s.PeriodStart, &s.PeriodEnd, &s.TrialEndsAt, &s.CanceledAt,
		&s.PausedAt, &s.NextRetryAt, &s.GraceEndsAt, &s.CreatedAt, &s.UpdatedAt,
	} {
		if at.Before(time.Time{}) || at.After(lastShown) {
			*at, changed = shown(*at), true
		}
	}
	if len(s.ExternalCustomerID) > maxExternalCustomer && utf8.RuneCountInString(s.ExternalCustomerID) > maxExternalCustomer {
		s.ExternalCustomerID, changed = "", true
	}
	if len(s.Metadata) > maxMetadata {
		s.Metadata, changed = nil, true
	}
	return changed
}

// text reads a column that is not null. If the value equals the previous row's, as it
// usually does, it reuses that string.
type text string

// ScanBytes implements pgtype.BytesScanner.
func (t *text) ScanBytes(b []byte) error {
	if b == nil {
		return errNull
	}
	if string(*t) != string(b) {
		*t = text(b)
	}
	return nil
}

var errNull = errors.New("null in a column that must not be null")

// instant reads null as the zero time, and infinity as a time outside of what can be
// shown.
type instant time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (i *instant) ScanTimestamptz(v pgtype.Timestamptz) error {
	switch v.InfinityModifier {
	case pgtype.Infinity:
		*i = instant(lastShown.AddDate(1, 0, 0))
	case pgtype.NegativeInfinity:
		*i = instant(firstShown.AddDate(-1, 0, 0))
	default:
		*i = instant(v.Time)
	}
	return nil
}

// scheduledVariant is a variant from a left join, nil if there is none.
type scheduledVariant struct {
	id, price *int64
	duration  *string
}

func (v *scheduledVariant) into() []any { return []any{&v.id, &v.duration, &v.price} }

func (v *scheduledVariant) variant() *Variant {
	if v.id == nil {
		return nil
	}
	return &Variant{ID: *v.id, Duration: period.Duration(*v.duration), Price: money.Amount(*v.price)}
}
