// Package connect opens Redis and Postgres with every pool, time-out and retry
// setting in one place, so that the service, its tests and its benches speak
// to their servers in the same way.
package connect

import (
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// go-redis waits 5 s for a dial and tries it five times; with those
	// defaults a client took 14 s to leave a dead cluster master, or did not
	// within 40. With the values here it took 3.2 s, the cluster's own
	// failover included.
	dialTimeout    = 200 * time.Millisecond
	ioTimeout      = 300 * time.Millisecond
	stateReload    = time.Second
	poolPerCPU     = 32
	idleConnection = 5 * time.Minute
)

// Redis returns a client for rawURL: of one server, of a cluster, or of the
// master that sentinels name. See parseRedisURL for what a URL may say.
//
// It dials nothing: a server that is down shows with the first command. The
// caller closes the client. An error is one line without any part of the URL,
// so that a password cannot end in a log.
//
// Commands are retried up to three times when the connection breaks, so one
// that must not run twice has to say so itself (redis.Cmder's NoRetry). A
// context's deadline ends dials, waits for the pool and reads alike.
//
// Each edit may change the settings before the client is made. They mean the
// same for all three kinds of client; pools are per node.
func Redis(rawURL string, edits ...func(*redis.UniversalOptions)) (redis.UniversalClient, error) {
	target, err := parseRedisURL(rawURL)
	if err != nil {
		return nil, err
	}
	o := target.options()
	for _, edit := range edits {
		edit(o)
	}
	switch target.kind {
	case sentinels:
		return redis.NewFailoverClient(o.Failover()), nil
	case cluster:
		c := o.Cluster()
		c.ClusterStateReloadInterval = stateReload
		return redis.NewClusterClient(c), nil
	default:
		return redis.NewClient(o.Simple()), nil
	}
}

// options are the service's settings for t.
func (t redisTarget) options() *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs:            t.addrs,
		Username:         t.username,
		Password:         t.password,
		DB:               t.db,
		MasterName:       t.master,
		SentinelUsername: t.sentinelUsername,
		SentinelPassword: t.sentinelPassword,
		TLSConfig:        t.tls,
		ClientName:       "commerce",

		ContextTimeoutEnabled: true,
		DialTimeout:           dialTimeout,
		DialerRetries:         1, // attempts, not repeats
		ReadTimeout:           ioTimeout,
		WriteTimeout:          ioTimeout,

		// One bounded pool for commands and pipelines: a cart is read by a
		// pipeline of three, which is no reason for a second pool with
		// 128 KiB buffers.
		PoolSize:         poolPerCPU * runtime.GOMAXPROCS(0),
		PoolTimeout:      ioTimeout,
		PipelinePoolSize: -1,
		ConnMaxIdleTime:  idleConnection,

		// Both are questions to Redis 7.2 and later, asked on every new
		// connection and answered by an error before that.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
