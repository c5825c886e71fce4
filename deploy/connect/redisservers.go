package connect

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisServers opens connections to single servers of a Redis URL, with the credentials
// and the certificates of the URL. The function Redis returns one client for all servers.
type RedisServers struct {
	target redisTarget
	edits  []func(*redis.UniversalOptions)
}

// NewRedisServers reads rawURL. It does not connect. Errors and edits are like those of Redis.
func NewRedisServers(rawURL string, edits ...func(*redis.UniversalOptions)) (*RedisServers, error) {
	target, err := parseRedisURL(rawURL)
	if err != nil {
		return nil, err
	}
	return &RedisServers{target, edits}, nil
}

// Addrs returns the URL's host:port: of the server, of the cluster's nodes or of sentinels.
func (s *RedisServers) Addrs() []string { return s.target.Addrs }

// Clustered reports whether the URL is that of a cluster.
func (s *RedisServers) Clustered() bool { return s.target.kind == cluster }

// TLS reports whether connections are encrypted.
func (s *RedisServers) TLS() bool { return s.target.TLSConfig != nil }

// Master returns the sentinels' name for the master, or "" without sentinels.
func (s *RedisServers) Master() string { return s.target.MasterName }

// Server returns a client of the server at addr. The caller closes it.
func (s *RedisServers) Server(addr string) *redis.Client {
	return redis.NewClient(s.options(addr).Simple())
}

// Sentinel returns a client of the sentinel at addr. The caller closes it.
func (s *RedisServers) Sentinel(addr string) *redis.SentinelClient {
	o := s.options(addr)
	o.DB, o.Username, o.Password = 0, o.SentinelUsername, o.SentinelPassword
	return redis.NewSentinelClient(o.Simple())
}

func (s *RedisServers) options(addr string) *redis.UniversalOptions {
	o := s.target.options()
	o.Addrs = []string{addr}
	for _, edit := range s.edits {
		edit(o)
	}
	return o
}

// Sentinels queries those of a URL for the master's replicas. It is safe for concurrent use.
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
