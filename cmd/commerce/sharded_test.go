package main

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/cart/catalog"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/deploy/migrations"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/figures"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/suite"
)

// A sharded database gives the same answers, each from the same shard of each table.
func TestSharded_ReadsOneShardAndGivesTheSameAnswers(t *testing.T) {
	t.Parallel()
	url := ephemeral.Postgres(t)
	m := assert.Must(migrations.Open(assert.Must(pgx.ParseConfig(url))(t)))(t)
	assert.Must(m.UpSharded(t.Context()))(t)
	assert.NoError(t, m.Close())
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	seen := &statements{args: map[string][]any{}}
	sharded := ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true, MaxConns: 4, StatementTimeout: -1, Tracer: seen})
	_, err := sharded.Exec(t.Context(), source(t, "cmd/commerce/testdata/likecitus.sql")+source(t, "deploy/postgres/citus.sql"),
		pgx.QueryExecModeSimpleProtocol)
	assert.NoError(t, err)
	plain := writer(t, ephemeral.Migrated(t))
	for _, db := range []*pgxpool.Pool{sharded, plain} {
		assert.NoError(t, pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
			return errors.Join(
				sample.WriteStores(t.Context(), tx, sample.Stores(), sample.Products(), sample.Coupons(now)),
				sample.WriteCouponUses(t.Context(), tx, sample.CouponUses()),
				sample.WriteSubscriptions(t.Context(), tx, sample.Customers(), sample.Subscriptions(now)))
		}))
	}
	assert.Equal(t, everyRead(t, sharded, now), everyRead(t, plain, now), "(-sharded +plain)")
	read := seen.shards(t, sharded)
	for _, statement := range []string{
		"products", "coupon", "coupon_uses", "coupon_uses_customer", "subscriptions", "subscription", "summary",
	} {
		assert.That(t, len(read[statement]) != 0, "statement %s reads no distributed table: %v", statement, read)
	}
	for statement, shards := range read {
		assert.That(t, len(shards) <= 1, "%s reads several shards: %v", statement, shards)
	}
}

// everyRead returns what the service reads of a store for carts and lists, as JSON.
func everyRead(t *testing.T, db *pgxpool.Pool, now time.Time) (found []string) {
	t.Helper()
	add := func(rows any, err error) {
		t.Helper()
		text, encoding := json.Marshal(rows)
		assert.NoError(t, errors.Join(err, encoding))
		found = append(found, string(text))
	}
	c := catalog.NewPostgres(db)
	add(c.Products(t.Context(), 1, []int64{1, 2, 3, 4, 5, 6, 7}))
	for _, coupon := range sample.Coupons(now)[1] {
		add(c.CouponsByKey(t.Context(), 1, coupon.Code))
		add(c.Uses(t.Context(), 1, coupon.Code, "", 100))
		add(c.Uses(t.Context(), 1, coupon.Code, "1001", 100))
	}
	s := suite.NewPostgres(postgres.Config{Pool: db, Budget: time.Minute, Wait: time.Minute})
	active, some := subscriptions.SetOf(subscriptions.Active), subscriptions.SetOf(subscriptions.Active, subscriptions.Paused, subscriptions.Expired)
	phone, _ := subscriptions.ParsePhone("501234567")
	for _, f := range []subscriptions.Filter{
		{},
		{Statuses: active},
		{Statuses: some},
		{Statuses: some, CallingCode: "966"},
		{CallingCode: "966"},
		{Email: "sara@example.com"},
		{Phone: phone},
		{Email: "sara@example.com", Phone: phone, CallingCode: "966", Statuses: active},
		{ExternalCustomerID: "crm-7"},
		{OrderID: 7},
		{Statuses: some, PeriodEndFrom: time.Unix(1, 0), PeriodEndBefore: time.Unix(1<<40, 0)},
	} {
		for _, q := range []subscriptions.Query{{Limit: 16}, {Limit: 5, Skip: 5}, {Limit: 5, After: subscriptions.Position{ID: 5020}}, {Limit: 5, Before: subscriptions.Position{ID: 5005}}} {
			q.Filter, q.Language, q.ByPeriodEnd = f, locale.Ar, !f.PeriodEndFrom.IsZero()
			add(s.List(t.Context(), 1, q))
		}
	}
	add(s.Get(t.Context(), 1, 5001, locale.Ar))
	totals, err := s.Totals(t.Context(), 1)
	slices.SortFunc(totals, func(a, b figures.Total) int {
		return slices.Compare([]string{string(a.Status), a.Currency, string(a.Duration)}, []string{string(b.Status), b.Currency, string(b.Duration)})
	})
	add(totals, err)
	return found
}

// statements collects a pool's statements that begin with a comment, as the service's do.
type statements struct {
	mu   sync.Mutex
	args map[string][]any // of the latest call, by text
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(q.SQL, "/* ") {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.args[q.SQL] = q.Args
	}
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// shard finds the numbers of shards in a plan.
var shard = regexp.MustCompile(`"Relation Name": "\w+_shard_(\d+)"`)

// shards explains each statement. It returns the numbers of the shards that each one reads, by the
// name in its comment. Citus runs a statement on one server only if this is the same shard of all
// tables.
func (s *statements) shards(t *testing.T, db *pgxpool.Pool) map[string][]string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	read := map[string][]string{}
	for sql, args := range s.args {
		name, _, _ := strings.Cut(strings.TrimPrefix(sql, "/* "), " */")
		var plan string
		err := db.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) "+sql, args...).Scan(&plan)
		assert.Require(t, err == nil, "explain %s: %v", name, err)
		for _, found := range shard.FindAllStringSubmatch(plan, -1) {
			if !slices.Contains(read[name], found[1]) {
				read[name] = append(read[name], found[1])
			}
		}
	}
	return read
}
