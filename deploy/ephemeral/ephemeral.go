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
//
// Libraries such as testcontainers-go need Docker, which many machines that run tests lack. Those that
// do not, such as embedded-postgres, start no Redis, cluster, sentinel, standby or pooler.
package ephemeral

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// The environment variables that name running servers.
const (
	EnvRedis    = "TEST_REDIS_URL"
	EnvCluster  = "TEST_REDIS_CLUSTER_URL"
	EnvPostgres = "TEST_POSTGRES_URL" // a role that may create databases
)

// EnvRedisServer names the program of Redis servers, such as valkey-server. Default: redis-server.
const EnvRedisServer = "TEST_REDIS_SERVER"

// shared is a server that all tests of a process use, started at its first use.
type shared struct {
	env   string // names a running one
	ports int
	make  maker

	once    sync.Once
	started *group // by this process; nil if err is not
	err     error
}

// These are package variables because the tests of a process have nothing else in common.
var (
	sharedRedis    = &shared{env: EnvRedis, ports: 1, make: redisMaker(Guard{})}
	sharedCluster  = &shared{env: EnvCluster, ports: 2 * masters, make: clusterMaker(Guard{}, slowFailover)}
	sharedPostgres = &shared{env: EnvPostgres, ports: 1, make: postgresMaker(nil, initdb...)}
	allShared      = []*shared{sharedRedis, sharedCluster, sharedPostgres}
)

func (s *shared) url() (string, error) {
	if url := os.Getenv(s.env); url != "" {
		return url, nil
	}
	s.once.Do(func() { s.started, s.err = startNew(s.ports, s.make) })
	if s.err != nil {
		return "", s.err
	}
	return s.started.url, nil
}

func (s *shared) urlFor(tb testing.TB) string {
	tb.Helper()
	url, err := s.url()
	must(tb, "start", err)
	return url
}

// Redis returns the URL of the shared standalone Redis server.
func Redis(tb testing.TB) string { tb.Helper(); return sharedRedis.urlFor(tb) }

// Cluster returns the URL of the shared Redis Cluster: three masters with one replica
// each, and with cluster-require-full-coverage off.
func Cluster(tb testing.TB) string { tb.Helper(); return sharedCluster.urlFor(tb) }

// StartShared starts the shared servers that the environment does not name, concurrently, and then measures
// EnvSlowness unless the environment has it. It returns environment entries ("NAME=value") for all of them.
func StartShared() (entries []string, err error) {
	if err := inParallel(allShared, func(s *shared) error { _, err := s.url(); return err }); err != nil {
		return nil, err
	}
	for _, s := range allShared {
		url, _ := s.url()
		entries = append(entries, s.env+"="+url)
	}
	if os.Getenv(EnvSlowness) != "" {
		return entries, nil
	}
	redis, _ := sharedRedis.url()
	postgres, _ := sharedPostgres.url()
	slowness, err := measureSlowness(redis, postgres)
	return append(entries, fmt.Sprintf("%s=%d", EnvSlowness, slowness)), err
}

// StopShared stops the shared servers of this process for good.
func StopShared() error {
	var errs []error
	for _, s := range allShared {
		if s.started != nil {
			errs = append(errs, inParallel(s.started.servers(), (*Server).stop))
		}
	}
	return errors.Join(errs...)
}

// Slow skips a test under -short, which is how `make test` runs. `make verify` runs it.
func Slow(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("slow: make verify runs it")
	}
}

func must(tb testing.TB, what string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("ephemeral: %s: %v", what, err)
	}
}
