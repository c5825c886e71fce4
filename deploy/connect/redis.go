// Package connect opens connections to Redis and Postgres. All settings for pools, timeouts and
// retries are here, so that the service, its tests and its benchmarks use the same ones.
package connect

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// By default go-redis dials five times with a timeout of 5 s. A client then took
	// 14 s, sometimes over 40 s, to fail over from a dead cluster master. With these
	// values it takes 3.2 s, including the cluster's own failover.
	dialTimeout = 200 * time.Millisecond
	ioTimeout   = 300 * time.Millisecond

	// A request may wait 200 ms for Redis. One that has waited half of it for a connection
	// gives up, so that those that get a connection have time left to use it. Otherwise an
	// overloaded Redis would serve only requests that are about to end.
	poolTimeout = 100 * time.Millisecond

	stateReload    = time.Second
	poolPerCPU     = 32
	idleConnection = 5 * time.Minute
)

// Within is an edit that gives a client limit for each of its waits: for a connection, for one of the pool, for a command.
func Within(limit time.Duration) func(*redis.UniversalOptions) {
	return func(o *redis.UniversalOptions) {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = limit, limit, limit, limit
	}
}

// Redis returns a client for rawURL: for a single server, for a cluster, or for the master that
// sentinels name. parseRedisURL documents the format of the URL.
//
// It does not connect: if the server is down, the first command fails. The caller closes the client.
// Errors are one line without any part of the URL, so that no password gets into a log. Errors of
// commands name the server (cause.Failure); look for one of go-redis with errors.Is and errors.As.
//
// The client retries commands up to three times when the connection breaks, unless they disable that
// (redis.Cmder's NoRetry). The deadline of a context applies to dials, waits for the pool, and reads.
//
// Edits may change the options. They mean the same for all kinds of client; each node has its own pool.
func Redis(rawURL string, edits ...func(*redis.UniversalOptions)) (redis.UniversalClient, error) {
	target, err := parseRedisURL(rawURL)
	if err != nil {
		return nil, err
	}
	o := target.options()
	for _, edit := range edits {
		edit(o)
	}
	failed := newTries("redis master " + target.MasterName)
	if o.Dialer == nil {
		direct := dial(redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig}))
		o.Dialer = direct.alwaysConnected()
		if target.kind == sentinels {
			o.Dialer = direct.orAnotherSentinel(target.Addrs, failed) // serverDials does the rest
		}
	}
	switch target.kind {
	case sentinels:
		client := redis.NewFailoverClient(o.Failover())
		client.Options().Limiter = failed // redis.FailoverOptions has no Limiter
		client.AddHook(serverDials{target.MasterName, target.Addrs, failed})
		client.AddHook(failures{failed})
		return client, nil
	case cluster:
		c := o.Cluster()
		c.ClusterStateReloadInterval = stateReload
		c.NewClient = newServerClient
		client := redis.NewClusterClient(c)
		client.AddHook(failures{newTries("redis cluster")})
		return client, nil
	default:
		return newServerClient(o.Simple()), nil
	}
}

func (t redisTarget) options() *redis.UniversalOptions {
	o := t.UniversalOptions
	o.ClientName = "commerce"

	o.ContextTimeoutEnabled = true
	o.DialTimeout = dialTimeout
	o.DialerRetries = 1 // attempts, not retries
	o.ReadTimeout = ioTimeout
	o.WriteTimeout = ioTimeout

	// One bounded pool for commands and pipelines. The pipeline that reads a cart
	// has three commands, too few for a second pool with 128 KiB buffers.
	o.PoolSize = poolPerCPU * runtime.GOMAXPROCS(0)
	o.PoolTimeout = poolTimeout
	o.PipelinePoolSize = -1
	o.ConnMaxIdleTime = idleConnection

	// Without these, each new connection sends commands that Redis before 7.2 rejects.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

// RedisLog logs go-redis's own messages at debug level instead of standard error: callers get the
// same information as errors. go-redis has one logger for the whole process, so only main sets it:
// redis.SetLogger(connect.RedisLog{Log: log}).
type RedisLog struct{ Log *slog.Logger }

// Printf implements go-redis's logger.
func (l RedisLog) Printf(ctx context.Context, format string, args ...any) {
	if l.Log.Enabled(ctx, slog.LevelDebug) {
		l.Log.DebugContext(ctx, fmt.Sprintf(format, args...), "from", "go-redis")
	}
}
