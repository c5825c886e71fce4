package connect

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sentinels queries the sentinels of a Redis URL for the replicas of its master. It is
// safe for concurrent use.
type Sentinels struct {
	master  string
	clients []*redis.SentinelClient
}

// RedisSentinels returns the sentinels of rawURL, nil if it has none. It does not
// connect. The caller closes them. Errors are like those of Redis.
func RedisSentinels(rawURL string) (*Sentinels, error) {
	servers, err := NewRedisServers(rawURL, func(o *redis.UniversalOptions) { o.PoolSize = 2 })
	if err != nil || servers.Master() == "" {
		return nil, err
	}
	s := &Sentinels{master: servers.Master()}
	for _, addr := range servers.Addrs() {
		s.clients = append(s.clients, servers.Sentinel(addr))
	}
	return s, nil
}

// Close closes the connections. It does nothing on nil.
func (s *Sentinels) Close() error {
	if s == nil {
		return nil
	}
	var all error
	for _, client := range s.clients {
		all = errors.Join(all, client.Close())
	}
	return all
}

// Replicas returns the number of replicas of the master that have answered a sentinel
// within the given time, according to the first sentinel that responds. It asks all of them
// at the same time, so that one that hangs does not use up the time of the others.
func (s *Sentinels) Replicas(ctx context.Context, within time.Duration) (int, error) {
	type answer struct {
		replicas int
		err      error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, len(s.clients))
	for _, client := range s.clients {
		go func() {
			n, err := KnownReplicas(ctx, client, s.master, within)
			answers <- answer{n, err}
		}()
	}
	var all error
	for range s.clients {
		a := <-answers
		if a.err == nil {
			return a.replicas, nil
		}
		all = errors.Join(all, a.err)
	}
	return 0, all
}

// KnownReplicas returns the number of replicas of a master that have answered this sentinel
// within the given time.
func KnownReplicas(ctx context.Context, client *redis.SentinelClient, master string, within time.Duration) (int, error) {
	replicas, err := client.Replicas(ctx, master).Result()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, replica := range replicas {
		ms, err := strconv.ParseInt(replica["last-ok-ping-reply"], 10, 64)
		if err != nil || time.Duration(ms)*time.Millisecond <= within {
			n++
		}
	}
	return n, nil
}
