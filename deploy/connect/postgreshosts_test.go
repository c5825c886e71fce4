package connect_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
)

func TestPostgresHosts_AreThoseOfTheURLEachOnce(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][]string{
		"postgres://u@a/db":                                    {"a:5432"},
		"postgres://u@a:1,b:2,a:1/db?sslmode=prefer":           {"a:1", "b:2"},
		"host=a,b port=1,2 dbname=db sslmode=require":          {"a:1", "b:2"},
		"postgres://u@[::1]:1,b/db?sslmode=disable":            {"[::1]:1", "b:5432"},
		"host=/var/run/postgresql,b user=u dbname=db port=1,2": {"/var/run/postgresql:1", "b:2"},
	} {
		got, err := connect.PostgresHosts(url)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", url, err, diff)
		}
	}
	if _, err := connect.PostgresHosts("postgres://u:hun/2@h/db"); err == nil {
		t.Error("a bad URL has hosts")
	}
}

func TestPostgres_UsesOnlyOneHost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode    string
		targets int // connections with and without TLS
	}{
		{"disable", 1}, {"require", 1}, {"prefer", 2}, {"allow", 2},
	} {
		for _, only := range []string{"a:1", "b:2", "c:3"} {
			edit := func(pool *pgxpool.Config) {
				hosts := map[string]bool{pool.ConnConfig.Host: true}
				for _, other := range pool.ConnConfig.Fallbacks {
					hosts[other.Host] = true
				}
				if n := 1 + len(pool.ConnConfig.Fallbacks); n != test.targets || len(hosts) != 1 || !hosts[only[:1]] {
					t.Errorf("sslmode=%s, only %s: %d targets on %v, want %d", test.mode, only, n, hosts, test.targets)
				}
			}
			pool, err := connect.Postgres(t.Context(), "postgres://u@a:1,b:2,c:3/db?sslmode="+test.mode, connect.PostgresConfig{Only: only, Edit: edit})
			if err != nil {
				t.Fatal(err)
			}
			pool.Close()
		}
	}
}
