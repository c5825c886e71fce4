//go:build unix

// Package ephemeral starts real Redis and Postgres servers for tests. They run on free
// ports of 127.0.0.1 in a temporary directory, and end with the process that started
// them.
//
// Redis, Cluster and Postgres return the URL of a shared server. It is started once per
// process, unless the environment names one (EnvRedis, EnvCluster, EnvPostgres). The
// command in ./run sets these, so that all packages of `go test ./...` share one set of
// servers. Tests of a shared server use their own keys or databases, and do not flush,
// stop or configure it. The Start functions return a private server, with which a test
// may do anything.
//
// If a program is missing or a server does not start, the test fails.
package ephemeral

import (
	"os"
	"testing"
	"time"
)

// The environment variables that name running servers.
const (
	EnvRedis    = "TEST_REDIS_URL"
	EnvCluster  = "TEST_REDIS_CLUSTER_URL"
	EnvPostgres = "TEST_POSTGRES_URL" // a role that may create databases
)

// local is this process's fleet. It is a package variable because the tests of a process
// have nothing else in common. Servers start at their first use, and end with the
// process.
var local Fleet

// Redis returns the URL of the shared standalone Redis server.
func Redis(tb testing.TB) string {
	tb.Helper()
	return shared(tb, EnvRedis, local.redisURL)
}

// Cluster returns the URL of the shared Redis Cluster: three masters with one replica
// each, and with cluster-require-full-coverage off.
func Cluster(tb testing.TB) string {
	tb.Helper()
	return shared(tb, EnvCluster, local.clusterURL)
}

// Postgres returns the URL of a new, empty database of the shared Postgres
// server. Its role is a superuser. The database is dropped when the test ends.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return PostgresFrom(tb, Template{})
}

// PostgresFrom is like Postgres, but the database is a copy of template.
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

// shared returns the server that the environment names, or starts one.
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

// StartRedis is Guard.StartRedis without access control.
func StartRedis(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return Guard{}.StartRedis(tb, settings...)
}

// StartCluster is Guard.StartCluster without access control.
func StartCluster(tb testing.TB, ahead ...time.Duration) *RedisCluster {
	tb.Helper()
	return Guard{}.StartCluster(tb, ahead...)
}

// StartSentinels is Guard.StartSentinels without access control.
func StartSentinels(tb testing.TB) *RedisSentinels { tb.Helper(); return Guard{}.StartSentinels(tb) }

// StartPostgres starts a Postgres server for this test alone. Its URL names an empty
// database. Settings are those of postgresql.conf, "name=value", such as "fsync=on", without
// which the server does not wait for the disk.
func StartPostgres(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	return private(tb, func(home *home) (*Server, error) { return startPostgres(home, settings...) })
}

// StartStandby starts a hot standby of primary for this test alone, with all databases. The
// primary must not be a standby, but a standby can follow another one later.
func StartStandby(tb testing.TB, primary *Server) *Standby {
	tb.Helper()
	return private(tb, func(home *home) (*Standby, error) { return startStandby(home, primary) })
}

// private starts servers for one test, and stops them when the test ends.
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
