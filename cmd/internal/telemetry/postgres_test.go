package telemetry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestPostgres_CountsStatementsByNameAndFailuresByKind(t *testing.T) {
	t.Parallel()
	m := New("test")
	db := ephemeral.OpenPool(t, ephemeral.Postgres(t), connect.PostgresConfig{Tracer: m.PostgresTracer(), MaxConns: 1, ConnectTimeout: 10 * time.Second})
	m.ObservePool("one", db)
	for range 2 {
		assert.Must(db.Exec(t.Context(), "/* nothing */ SELECT"))(t)
	}
	_, err := db.Exec(t.Context(), "/* slow */ SET statement_timeout = 1; SELECT pg_sleep(60)")
	assert.Require(t, err != nil, "a slow statement succeeds")
	conn := assert.Must(db.Acquire(t.Context()))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = db.Acquire(ctx)
	assert.Require(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
	values := m.scrape(t)
	conn.Release()
	assert.Equal(t, m.failures(t, "postgres"), map[string]float64{"timeout": 1, "pool_timeout": 1}, "failures")
	for series, want := range map[string]float64{
		`commerce_postgres_statement_duration_seconds_count{statement="nothing"}`: 2,
		`commerce_postgres_statement_duration_seconds_count{statement="slow"}`:    1,
		`commerce_postgres_pool_connections{pool="one",state="used"}`:             1,
		`commerce_postgres_pool_connections{pool="one",state="idle"}`:             0,
		`commerce_postgres_pool_max_connections{pool="one"}`:                      1,
	} {
		got, ok := values[series]
		assert.That(t, ok && got == want, "%s is %v, want %v", series, got, want)
	}
}

func TestStatementName_IsInTheLeadingComment(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"/* products */ SELECT 1":               "products",
		"/* store */\nSELECT 1":                 "store",
		"SELECT /* late */ 1":                   "other",
		"/* open":                               "other",
		"":                                      "other",
		"commit":                                "commit",
		"begin isolation level repeatable read": "begin",
	} {
		_, got := statementName(sql)
		assert.Equal(t, got, want, "%q", sql)
	}
}

func TestPostgresKind_NamesEachSQLState(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"57014": "timeout", "57P01": "reset", "57P03": "unavailable", "53300": "too_many_connections", "53100": "resources",
		"25006": "read_only", "42501": "denied", "3D000": "denied", "28P01": "denied", "40P01": "conflict", "0A000": "stale_statement", "42601": "other", "": "other",
	} {
		assert.Equal(t, postgresKind(&pgconn.PgError{Code: code}), want, "%q", code)
	}
}
