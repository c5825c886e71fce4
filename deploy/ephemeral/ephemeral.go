//go:build unix

// Package ephemeral boots real Redis and Postgres servers for tests: on free
// ports of 127.0.0.1, in a temporary directory, and never past the end of the
// process that asked for them.
//
// Redis, Cluster and Postgres give the address of a shared server, which is
// started once for the process, or named by the environment (EnvRedis and its
// siblings), so that one set of servers can carry a whole `go test ./...`; see
// the command in ./run. Tests share these: they use keys or stores of their
// own, and never flush, stop or configure. The Start functions give a private
// server, which a test may treat as badly as it likes.
//
// Missing programs and servers that do not come up fail the test.
package ephemeral

import (
	"os"
	"testing"
)

// The environment variables that name servers which are there already.
const (
	EnvRedis    = "TEST_REDIS_URL"
	EnvCluster  = "TEST_REDIS_CLUSTER_URL"
	EnvPostgres = "TEST_POSTGRES_URL" // a role that may create databases
)

// local is this process's fleet. It is a package variable since Go's tests of
// one process have nothing else in common; nothing starts before it is asked
// for, and nothing needs to be stopped.
var local Fleet

// Redis returns the URL of the shared single Redis server.
func Redis(tb testing.TB) string {
	tb.Helper()
	return shared(tb, EnvRedis, local.redisURL)
}

// Cluster returns the URL of the shared Redis Cluster: three masters with a
// replica each, and cluster-require-full-coverage off.
func Cluster(tb testing.TB) string {
	tb.Helper()
	return shared(tb, EnvCluster, local.clusterURL)
}

// Postgres returns the URL of a new, empty database of the shared Postgres
// server. Its role is a superuser; the database is dropped with the test.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return PostgresFrom(tb, Template{})
}

// PostgresFrom is Postgres with a database that template has prepared.
func PostgresFrom(tb testing.TB, template Template) string {
	tb.Helper()
	server := shared(tb, EnvPostgres, local.postgresURL)
	url, drop, err := createDatabase(server, template)
	if err != nil {
		tb.Fatalf("ephemeral: %v", err)
	}
	tb.Cleanup(func() {
		if err := drop(); err != nil {
			tb.Errorf("ephemeral: %v", err)
		}
	})
	return url
}

// shared prefers the server that the environment names.
func shared(tb testing.TB, env string, start func() (string, error)) string {
	tb.Helper()
	if url := os.Getenv(env); url != "" {
		return url
	}
	url, err := start()
	if err != nil {
		tb.Fatalf("ephemeral: %v", err)
	}
	return url
}

// StartRedis is Guard's, with no guard.
func StartRedis(tb testing.TB) *Server { tb.Helper(); return Guard{}.StartRedis(tb) }

// StartCluster is Guard's, with no guard.
func StartCluster(tb testing.TB) *RedisCluster { tb.Helper(); return Guard{}.StartCluster(tb) }

// StartSentinels is Guard's, with no guard.
func StartSentinels(tb testing.TB) *RedisSentinels { tb.Helper(); return Guard{}.StartSentinels(tb) }

// StartPostgres starts a Postgres server for this test alone. Its URL is of an
// empty database.
func StartPostgres(tb testing.TB) *Server {
	tb.Helper()
	return private(tb, startPostgres)
}

// private starts what the test alone will use, and ends it with the test.
func private[S interface{ belongTo(testing.TB) }](tb testing.TB, start func(*home) (S, error)) S {
	tb.Helper()
	home, err := local.homeDir()
	if err != nil {
		tb.Fatalf("ephemeral: %v", err)
	}
	started, err := start(home)
	if err != nil {
		tb.Fatalf("ephemeral: %v", err)
	}
	started.belongTo(tb)
	return started
}
