package connect_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// By default, go-redis stops dialing for a second once as many dials have failed as the pool
// has connections.
func TestRedis_UsesAServerThatIsBackImmediately(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	client := open(t, server.URL, func(o *redis.UniversalOptions) { o.MaxRetries, o.PoolSize = -1, 5 })
	server.Stop()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { wantNoDial(t, client) })
	}
	all.Wait()
	server.Restart()
	wantPings(t, client)
}

func wantNoDial(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	err := client.Ping(t.Context()).Err()
	failed, ok := errors.AsType[*net.OpError](err)
	assert.That(t, ok && failed.Op == "dial", "ping of a stopped server: %v, want that the dial failed", err)
}

func wantPings(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	for range 20 {
		assert.NoError(t, client.Ping(t.Context()).Err())
	}
}

// A dial may fail after its command has given up. No other command may get the failed
// connection.
func TestRedis_DoesNotUseADialThatFailedLate(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t, "--tcp-backlog", "1")
	client := open(t, server.URL, func(o *redis.UniversalOptions) { o.MaxRetries = -1 })
	server.Freeze()
	for range 10 { // the server's queue is full after a few, and further dials hang
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		assert.That(t, client.Ping(ctx).Err() != nil, "ping of a frozen server succeeded")
		cancel()
	}
	time.Sleep(500 * time.Millisecond) // dials fail after 200 ms
	server.Thaw()
	eventually(t, "the server's queue has room", func() bool {
		return open(t, server.URL).Ping(t.Context()).Err() == nil
	})
	wantPings(t, client)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		assert.Require(t, time.Since(began) <= 20*time.Second, "not after 20s: %s", what)
	}
}
