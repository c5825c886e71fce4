package inspect

import (
	"context"
	"maps"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redisServer is one Redis server. A value is missing if the server does not show it to this user.
type redisServer struct {
	report
	topology
	replica bool // it was found as the replica of another server

	info     map[string]string // fields of INFO
	settings map[string]string // from CONFIG GET
	replicas []string          // addresses of those that are connected to a master
}

// check makes all checks. For a master, it also finds the replicas.
func (s *redisServer) check(ctx context.Context, client *redis.Client) {
	if err := client.Ping(ctx).Err(); err != nil && !redis.HasErrorPrefix(err, "MISCONF") { // a failed snapshot
		s.judgeSilence(failure(err))
		return
	}
	s.judge("redis_answers", ok("Redis answers."))
	s.clock = s.expect.readClock("redis_clock", redisClockBreaks, client.Time(ctx).Result)
	s.judgeTLS("redis_tls", redisTLS, s.TLS() || local(s.server))
	s.read(ctx, client)
	s.judgeVersion()
	s.judgeEviction()
	s.judgePersistence()
	if appends, known := s.appends(); appends || !known {
		s.judgeReplay(ctx, client)
	}
	s.judgeDisk()
	s.judgeMemory()
	if s.replica {
		return
	}
	role, connected := s.readRole(ctx, client)
	s.judgeRole(role)
	if role == "" || role == "master" {
		s.judgeReplicas(connected)
		s.judgeMerges(connected, s.listed(ctx, client))
	}
	s.judgeWrites(connected)
	if s.Clustered() {
		s.judgeCoverage()
	}
	s.judgeRights(ctx, client)
}

func (s *redisServer) judgeSilence(cause string) {
	const server, announced = "REDIS_URL, or the server", "the address that the replica announces"
	s.judge("redis_answers",
		unknown(s.replica && !s.Clustered() && !s.watched(), announced, "This replica cannot be checked from here: %s.", cause),
		warning(s.replica, announced, "This replica does not answer: %s. If it becomes master, calls for its carts get a 503.", cause),
		serious(s.Clustered(), server, "Redis does not answer: %s. Calls for the carts of this shard get a 503.", cause),
		serious(true, server, "Redis does not answer: %s. All cart calls get a 503.", cause))
}

// read reads INFO, whose sections have no field in common, and the settings that are judged. A
// server that hides one setting still shows the others.
func (s *redisServer) read(ctx context.Context, client *redis.Client) {
	s.info, s.settings = map[string]string{}, map[string]string{}
	for _, section := range client.InfoMap(ctx).Val() {
		maps.Copy(s.info, section)
	}
	cmds, _ := client.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command has its own error
		for _, name := range []string{
			"maxmemory-policy", "appendonly", "appendfsync", "save", "min-replicas-to-write", "cluster-require-full-coverage",
		} {
			pipe.ConfigGet(ctx, name)
		}
		return nil
	})
	for _, cmd := range cmds {
		maps.Copy(s.settings, cmd.(*redis.MapStringStringCmd).Val())
	}
}

// either returns a setting or, if that is hidden, a field of INFO.
func (s *redisServer) either(setting, field string) (string, bool) {
	if value, known := s.settings[setting]; known {
		return value, true
	}
	value, known := s.info[field]
	return value, known
}

func (s *redisServer) number(field string) (int64, bool) {
	n, err := strconv.ParseInt(s.info[field], 10, 64)
	return n, err == nil
}

func (s *redisServer) judgeVersion() {
	version := s.info["redis_version"]
	major, err := strconv.Atoi(strings.SplitN(version, ".", 2)[0])
	s.judge("redis_version",
		unknown(err != nil, "redis_version of INFO", "The version is not visible. The service needs Redis 7.0 or later."),
		serious(major < 7, "the version of Redis", "This is Redis %s. The service needs Redis 7.0 or later.", version),
		ok("This is Redis %s.", version))
}

func (s *redisServer) judgeEviction() {
	policy, known := s.either("maxmemory-policy", "maxmemory_policy")
	s.judge("redis_eviction",
		unknown(!known, "maxmemory-policy", "It is not visible whether Redis deletes carts when its memory is full."),
		serious(policy != "noeviction", "maxmemory-policy noeviction", "Redis deletes carts when its memory is full: maxmemory-policy is %s.", policy),
		ok("Redis deletes no carts when its memory is full."))
}

const nearlyFull = 90

func (s *redisServer) judgeMemory() {
	used, knownUsed := s.number("used_memory")
	maximum, known := s.number("maxmemory")
	buffers, _ := s.number("mem_not_counted_for_evict") // of replicas and the append-only file
	s.judge("redis_maxmemory",
		unknown(!known, "maxmemory of INFO", "It is not visible whether Redis has a memory limit."),
		warning(maximum == 0, "maxmemory",
			"If the machine runs out of memory, the operating system kills Redis. With a memory limit, Redis would refuse changes (503) instead."),
		ok("Redis has a memory limit."))
	if known && maximum == 0 {
		return
	}
	percent := 100 * (used - buffers) / max(maximum, 1)
	s.judge("redis_memory",
		unknown(!knownUsed || !known, "used_memory and maxmemory of INFO", "It is not visible how much memory is left."),
		serious(percent >= 100, "maxmemory", "Redis refuses changes (503), because it has reached its memory limit."),
		warning(percent >= nearlyFull, "maxmemory", "Redis uses %d %% of its memory limit. At 100 %%, it refuses changes (503).", percent),
		ok("Redis uses less than %d %% of its memory limit.", nearlyFull))
}

func (s *redisServer) judgeCoverage() {
	const setting = "cluster-require-full-coverage"
	value, known := s.settings[setting]
	s.judge("redis_coverage",
		unknown(!known, setting, "It is not visible whether the loss of one shard affects the carts of all shards."),
		warning(value != "no", setting+" no", "If one shard is lost, calls for the carts of all shards get a 503."),
		ok("If one shard is lost, the other shards still serve their carts."))
}
