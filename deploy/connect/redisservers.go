package connect

import "github.com/redis/go-redis/v9"

// RedisServers opens connections to single servers of a Redis URL, with the credentials
// and the certificates of the URL. The function Redis returns one client for all servers.
type RedisServers struct {
	target redisTarget
	edits  []func(*redis.UniversalOptions)
}

// NewRedisServers reads rawURL. It does not connect. Errors and edits are like those of
// Redis.
func NewRedisServers(rawURL string, edits ...func(*redis.UniversalOptions)) (*RedisServers, error) {
	target, err := parseRedisURL(rawURL)
	if err != nil {
		return nil, err
	}
	return &RedisServers{target, edits}, nil
}

// Addrs returns the addresses in the URL as host:port. They are the addresses of the server,
// of nodes of the cluster, or of the sentinels.
func (s *RedisServers) Addrs() []string { return s.target.addrs }

// Clustered reports whether the URL is that of a cluster.
func (s *RedisServers) Clustered() bool { return s.target.kind == cluster }

// Master returns the sentinels' name for the master, or "" without sentinels.
func (s *RedisServers) Master() string { return s.target.master }

// Server returns a client of the server at addr. The caller closes it.
func (s *RedisServers) Server(addr string) *redis.Client {
	return redis.NewClient(s.options(addr).Simple())
}

// Sentinel returns a client of the sentinel at addr. The caller closes it.
func (s *RedisServers) Sentinel(addr string) *redis.SentinelClient {
	o := s.options(addr)
	o.DB = 0
	o.Username, o.Password = s.target.sentinelUsername, s.target.sentinelPassword
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
