package telemetry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestPostgres_CountsStatementsByNameAndFailuresByKind(t *testing.T) {
	t.Parallel()
	m := New("test")
	db := ephemeral.OpenPool(t, ephemeral.Postgres(t), connect.PostgresConfig{Tracer: m.PostgresTracer(), MaxConns: 1, ConnectTimeout: 10 * time.Second})
	m.ObservePool("one", db)
	for range 2 {
		if _, err := db.Exec(t.Context(), "/* nothing */ SELECT"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(t.Context(), "/* slow */ SET statement_timeout = 1; SELECT pg_sleep(60)"); err == nil {
		t.Fatal("a slow statement succeeds")
	}
	conn, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := db.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	values := m.scrape(t)
	conn.Release()
	if diff := cmp.Diff(map[string]float64{"timeout": 1, "pool_timeout": 1}, m.failures(t, "postgres")); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	for series, want := range map[string]float64{
		`commerce_postgres_statement_duration_seconds_count{statement="nothing"}`: 2,
		`commerce_postgres_statement_duration_seconds_count{statement="slow"}`:    1,
		`commerce_postgres_pool_connections{pool="one",state="used"}`:             1,
		`commerce_postgres_pool_connections{pool="one",state="idle"}`:             0,
		`commerce_postgres_pool_max_connections{pool="one"}`:                      1,
	} {
		if got, ok := values[series]; !ok || got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
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
		if _, got := statementName(sql); got != want {
			t.Errorf("%q is %q, want %q", sql, got, want)
		}
	}
}

func TestPostgresKind_NamesEachSQLState(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"57014": "timeout", "57P01": "reset", "57P03": "unavailable", "53300": "too_many_connections", "53100": "resources",
		"25006": "read_only", "42501": "denied", "3D000": "denied", "28P01": "denied", "40P01": "conflict", "42601": "other", "": "other",
	} {
		if got := postgresKind(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("%q is %q, want %q", code, got, want)
		}
	}
}
