// Package inspect looks at the Redis and Postgres servers that the service uses, and finds the
// settings and states that would lose carts or break a promise of the documentation. It changes
// nothing in the servers, except that it sends one notification on a Postgres channel of its own.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Config says which servers to check, and what the service expects of them.
type Config struct {
	RedisURL    string           // empty: no Redis
	DatabaseURL string           // empty: no Postgres
	ReplicaURL  string           // of replicas of Postgres, of which only the encryption is checked; empty: none
	MinReplicas int              // REDIS_MIN_REPLICAS
	Durable     bool             // DURABILITY=replica
	Serving     bool             // the user of Redis is the service's
	Now         func() time.Time // default time.Now
	Last        *Last            // what the last check saw, for the next one; nil: this is the only one
}

// Last is what a check sees only by comparing with the one before. The zero value has seen nothing.
type Last struct {
	writing string // the oldest transaction of Postgres that others wait for; "" for none
	since   time.Time
}

const (
	// patience is how long to wait for each answer of a server.
	patience = 2 * time.Second

	// limit is how long everything may take.
	limit = 8 * time.Second
)

// Servers checks all servers at the same time, within 8 seconds. It returns a finding for each
// check of each server, the worst ones first. A server that does not answer is a finding. An error
// means that a URL is wrong.
func Servers(ctx context.Context, c Config) ([]Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if c.Now == nil {
		c.Now = time.Now
	}
	var redis, postgres []*report
	var redisErr, postgresErr error
	var both sync.WaitGroup
	if c.RedisURL != "" {
		both.Go(func() { redis, redisErr = checkRedis(ctx, c) })
	}
	if c.DatabaseURL != "" {
		both.Go(func() { postgres, postgresErr = checkPostgres(ctx, c) })
	}
	both.Wait()
	reports := slices.Concat(redis, postgres)
	reports = append(reports, judgeClocks(reports)...)
	replicas, replicasErr := checkReplicaURL(ctx, c.ReplicaURL)
	reports = append(reports, replicas...)
	var all []Finding
	for _, r := range reports {
		all = append(all, r.findings...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Level.rank(), b.Level.rank()) })
	return all, errors.Join(redisErr, postgresErr, replicasErr)
}

// failure says in a few words, without the user, why a server does not answer. Empty for nil.
func failure(err error) string {
	if err == nil {
		return ""
	}
	if connecting, ok := errors.AsType[*pgconn.ConnectError](err); ok { // its text contains the user and the database
		err = connecting.Unwrap()
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Message
	}
	network, ok := errors.AsType[net.Error](err)
	if errors.Is(err, context.DeadlineExceeded) || ok && network.Timeout() {
		return fmt.Sprintf("no answer within %s", patience)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok {
		err = dial.Err
	}
	return strings.TrimRight(strings.Join(strings.Fields(err.Error()), " "), ".")
}

// What to change so that a connection is encrypted.
const (
	redisTLS    = "rediss:// in REDIS_URL, and TLS in Redis"
	postgresTLS = "sslmode=verify-full, or at least require, in "
)

func (r *report) judgeTLS(code, setting string, private bool) {
	r.judge(code,
		warning(!private, setting, "Others in the network can read the password and all data, because the connection is not always encrypted."),
		ok("No data crosses the network unencrypted."))
}

// local reports whether an address, with or without a port, is that of this machine, or a Unix socket.
func local(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	return host == "localhost" || strings.HasPrefix(host, "/") || net.ParseIP(host).IsLoopback()
}

func each[T, R any](items []T, do func(T) R) []R {
	results := make([]R, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { results[i] = do(item) })
	}
	all.Wait()
	return results
}
