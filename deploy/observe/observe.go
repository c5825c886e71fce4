// Package observe reads settings and state from the Redis and Postgres servers that the service
// uses. Package inspect judges them. Package observe changes nothing in the servers, except that
// it sends one notification on a Postgres channel of its own.
package observe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/connect"
	"commerce/deploy/inspect"
)

// Config says which servers to observe.
type Config struct {
	RedisURL    string           // empty: no Redis
	DatabaseURL string           // empty: no Postgres
	Now         func() time.Time // default time.Now
}

const (
	// patience is how long to wait for each answer of a server.
	patience = 2 * time.Second

	// limit is how long everything may take.
	limit = 8 * time.Second
)

// Servers observes all servers at the same time, within 8 seconds. A server that does not
// answer is part of the result. An error means that a URL is wrong.
func Servers(ctx context.Context, c Config) (inspect.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if c.Now == nil {
		c.Now = time.Now
	}
	var o inspect.Observation
	var redisErr, postgresErr error
	var both sync.WaitGroup
	if c.RedisURL != "" {
		both.Go(func() { redisErr = observeRedis(ctx, c, &o) })
	}
	if c.DatabaseURL != "" {
		both.Go(func() { o.Postgres, postgresErr = observePostgres(ctx, c) })
	}
	both.Wait()
	return o, errors.Join(redisErr, postgresErr)
}

// clock compares a server's clock, read between sent and received, with this machine's.
func clock(at, sent, received time.Time) *inspect.Clock {
	within := received.Sub(sent) / 2
	return &inspect.Clock{Ahead: at.Sub(sent.Add(within)), Within: within}
}

// failure says in a few words why a server does not answer. It leaves out the user.
func failure(err error) string {
	var connecting *pgconn.ConnectError
	if errors.As(err, &connecting) { // its text contains the user and the database
		err = connecting.Unwrap()
	}
	var refused *pgconn.PgError
	var network net.Error
	var dial *net.OpError
	switch {
	case errors.As(err, &refused):
		return refused.Message
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("no answer within %s", patience)
	case errors.As(err, &dial):
		err = dial.Err
	}
	return strings.TrimRight(strings.Join(strings.Fields(err.Error()), " "), ".")
}

// patient makes a client wait long enough for a distant server, and send each command once.
func patient(o *redis.UniversalOptions) {
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = patience, patience, patience, patience
	o.MaxRetries, o.PoolSize = -1, 1
}

// each calls do for all items at the same time, and returns the results in their order.
func each[T, R any](items []T, do func(T) R) []R {
	results := make([]R, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { results[i] = do(item) })
	}
	all.Wait()
	return results
}

// observeRedis finds the servers of REDIS_URL and reads each of them, and then the replicas
// that the masters name.
func observeRedis(ctx context.Context, c Config, o *inspect.Observation) error {
	servers, err := connect.NewRedisServers(c.RedisURL, patient)
	if err != nil {
		return err
	}
	r := reader{servers: servers, now: c.Now}
	var masters, replicas []string
	switch {
	case servers.Master() != "":
		r.kind = inspect.Watched
		masters, o.Sentinels = r.askSentinels(ctx)
	case servers.Clustered():
		r.kind = inspect.Clustered
		o.Cluster, masters, replicas = r.askCluster(ctx)
	default:
		masters = servers.Addrs()
	}
	for _, of := range each(masters, func(addr string) found { return r.master(ctx, addr) }) {
		o.Redis = append(o.Redis, of.Redis)
		replicas = append(replicas, of.replicas...)
	}
	replicas = unique(replicas)
	o.Redis = append(o.Redis, each(replicas, func(addr string) inspect.Redis { return r.replica(ctx, addr) })...)
	return nil
}
