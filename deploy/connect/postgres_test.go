package connect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestPostgres_SendsItsSettingsToTheServer(t *testing.T) {
	t.Parallel()
	const ask = `SELECT name || '=' || setting FROM pg_settings WHERE name = ANY($1) ORDER BY name`
	names := []string{"application_name", "default_transaction_read_only", "statement_timeout"}
	url := ephemeral.Postgres(t)
	for name, test := range map[string]struct {
		config connect.PostgresConfig
		want   []string
	}{
		"the service's": {
			connect.PostgresConfig{},
			[]string{"application_name=commerce", "default_transaction_read_only=on", "statement_timeout=1000"},
		},
		"a writer's": {
			connect.PostgresConfig{Writable: true, ApplicationName: "migrate", StatementTimeout: -1},
			[]string{"application_name=migrate", "default_transaction_read_only=off", "statement_timeout=0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, _ := ephemeral.OpenPool(t, url, test.config).Query(t.Context(), ask, names)
			got := assert.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
			assert.Equal(t, got, test.want, "settings")
		})
	}
}

func TestPostgres_LimitsTheTimeToConnect(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartPostgres(t)
	server.Freeze()
	pool := ephemeral.OpenPool(t, server.URL, connect.PostgresConfig{ConnectTimeout: 100 * time.Millisecond})
	start := time.Now()
	err := pool.Ping(t.Context())
	took := time.Since(start)
	assert.That(t, err != nil && took <= 20*time.Second, "frozen: %v after %v, want an error after 100ms", err, took)
}

func TestPostgres_ReportsABadURLInOneLineWithoutThePassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                        "empty",
		"postgres://u:hunter/2@h/db":              "percent-encoded",
		"postgres://u:hun%zzter@h/db":             "percent-encoded",
		"postgres://u:hunter@h:port/db":           "port",
		"postgres://u:p@hunter@h/db":              "percent-encoded",
		"postgres://u:hunter@h/db?sslmode=hunter": "sslmode",
		"host=h password='hunter":                 "percent-encoded",
		"postgres://u:hunter@h/db?sslrootcert=/nowhere/ca.pem": "/nowhere/ca.pem",
	} {
		_, err := connect.Postgres(t.Context(), url, connect.PostgresConfig{})
		text := fmt.Sprint(err)
		assert.That(t, strings.Contains(text, want) && !strings.Contains(text, "hun") && !strings.Contains(text, "\n"),
			"Postgres(%q): %q, want one line with %q and no password", url, text, want)
	}
}

func TestPostgresHosts_AreThoseOfTheURLEachOnce(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][]string{
		"postgres://u@a/db":                                    {"a:5432"},
		"postgres://u@a:1,b:2,a:1/db?sslmode=prefer":           {"a:1", "b:2"},
		"host=a,b port=1,2 dbname=db sslmode=require":          {"a:1", "b:2"},
		"postgres://u@[::1]:1,b/db?sslmode=disable":            {"[::1]:1", "b:5432"},
		"host=/var/run/postgresql,b user=u dbname=db port=1,2": {"/var/run/postgresql:1", "b:2"},
	} {
		assert.Equal(t, assert.Must(connect.PostgresHosts(url))(t), want, "%s", url)
	}
	_, err := connect.PostgresHosts("postgres://u:hun/2@h/db")
	assert.That(t, err != nil, "a bad URL has hosts")
}

func TestPostgres_UsesOnlyOneHost(t *testing.T) {
	t.Parallel()
	for mode, targets := range map[string]int{"disable": 1, "require": 1, "prefer": 2, "allow": 2} { // without TLS too
		for _, only := range []string{"a:1", "b:2", "c:3"} {
			edit := func(pool *pgxpool.Config) {
				hosts := map[string]bool{pool.ConnConfig.Host: true}
				for _, other := range pool.ConnConfig.Fallbacks {
					hosts[other.Host] = true
				}
				assert.Equal(t, 1+len(pool.ConnConfig.Fallbacks), targets, "sslmode=%s, only %s: targets", mode, only)
				assert.Equal(t, hosts, map[string]bool{only[:1]: true}, "sslmode=%s: hosts", mode)
			}
			config := connect.PostgresConfig{Only: only, Edit: edit}
			assert.Must(connect.Postgres(t.Context(), "postgres://u@a:1,b:2,c:3/db?sslmode="+mode, config))(t).Close()
		}
	}
}
