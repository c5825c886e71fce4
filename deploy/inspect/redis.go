package inspect

import (
	"slices"
	"strconv"
	"strings"
)

// Redis is what was read from one Redis server. A value is missing if the server does not
// show it to this user.
type Redis struct {
	Server  string // host:port
	Replica bool   // it was found as the replica of another server
	Kind    Kind

	Failure string            // why it does not answer; empty if it does
	Info    map[string]string // fields of INFO
	Config  map[string]string // settings, from CONFIG GET

	Role      string // "master" or "slave"; empty if unknown
	Connected *int   // replicas that are connected to it
	Listed    *int   // replicas that the cluster or the sentinels list for it; 0 without these
	Clock     *Clock

	// Replays reports whether the user default may run the service's changes; nil if unknown.
	Replays *bool

	// ReadsCarts reports whether this user may read carts, as the service's user must.
	// Refused lists the other commands of the service that this user may not run, and
	// LimitKeys if it may not access these keys.
	ReadsCarts bool
	Refused    []string
}

// LimitKeys are the keys of limits of clients.
const LimitKeys = "limit:*"

// Kind is how the service finds a Redis server.
type Kind int

// The kinds of REDIS_URL.
const (
	Single Kind = iota
	Clustered
	Watched // by sentinels
)

// either returns a setting from CONFIG or, if that is hidden, a field of INFO.
func (r Redis) either(setting, field string) (string, bool) {
	if value, known := r.Config[setting]; known {
		return value, true
	}
	value, known := r.Info[field]
	return value, known
}

// number returns a number from INFO.
func (r Redis) number(field string) (int64, bool) {
	n, err := strconv.ParseInt(r.Info[field], 10, 64)
	return n, err == nil
}

func judgeRedis(r Redis, e Expect) []Finding {
	if r.Failure != "" {
		return applied(r.Server, r, redisFails)
	}
	all := applied(r.Server, r, redisAnswers, redisVersion, redisEviction, redisPersistence, redisReplay, redisDisk, redisMemory)
	if r.Replica {
		return all
	}
	replicas := func(r Redis) Finding { return redisReplicas(r, e) }
	merges := func(r Redis) Finding { return redisMerges(r, e) }
	rights := func(r Redis) Finding { return redisRights(r, e) }
	return append(all, applied(r.Server, r, redisRole, replicas, merges, redisWrites, redisCoverage, rights)...)
}

func redisFails(r Redis) Finding {
	const code = "redis_answers"
	switch {
	case r.Replica && r.Kind == Single:
		return unknown(code, "the address that the replica announces", "This replica cannot be checked from here: %s.", r.Failure)
	case r.Replica:
		return warning(code, "the address that the replica announces",
			"This replica does not answer: %s. If it becomes master, calls for its carts get a 503.", r.Failure)
	case r.Kind == Clustered:
		return serious(code, "REDIS_URL, or the server", "Redis does not answer: %s. Calls for the carts of this shard get a 503.", r.Failure)
	}
	return serious(code, "REDIS_URL, or the server", "Redis does not answer: %s. All cart calls get a 503.", r.Failure)
}

func redisAnswers(Redis) Finding { return ok("redis_answers", "Redis answers.") }

func redisVersion(r Redis) Finding {
	const code = "redis_version"
	version, known := r.Info["redis_version"]
	major, err := strconv.Atoi(strings.SplitN(version, ".", 2)[0])
	switch {
	case !known || err != nil:
		return unknown(code, "redis_version of INFO", "The version is not visible. The service needs Redis 7.0 or later.")
	case major < 7:
		return serious(code, "the version of Redis", "This is Redis %s. The service needs Redis 7.0 or later.", version)
	}
	return ok(code, "This is Redis %s.", version)
}

func redisEviction(r Redis) Finding {
	const code = "redis_eviction"
	policy, known := r.either("maxmemory-policy", "maxmemory_policy")
	switch {
	case !known:
		return unknown(code, "maxmemory-policy", "It is not visible whether Redis deletes carts when its memory is full.")
	case policy != "noeviction":
		return serious(code, "maxmemory-policy noeviction", "Redis deletes carts when its memory is full: maxmemory-policy is %s.", policy)
	}
	return ok(code, "Redis deletes no carts when its memory is full.")
}

func redisRole(r Redis) Finding {
	const code = "redis_role"
	switch {
	case r.Role == "":
		return unknown(code, "ROLE", "It is not visible whether this server is a master.")
	case r.Role != "master":
		return serious(code, "REDIS_URL", "All cart calls get a 503, because this server is a replica.")
	case r.Kind == Single && r.Info["cluster_enabled"] == "1":
		return serious(code, "REDIS_URL: add ?cluster=true",
			"Calls for the carts of other nodes get a 503, because this server is a node of a cluster.")
	}
	return ok(code, "This server is a master.")
}

// Sentinel is what was read from one sentinel.
type Sentinel struct {
	Server  string
	Failure string // why it does not answer, or does not know the master
	Quorum  string // why no failover would happen; empty if one would
	Hidden  bool   // it is not visible whether one would happen
}

func judgeSentinels(sentinels []Sentinel) []Finding {
	named := slices.ContainsFunc(sentinels, func(s Sentinel) bool { return s.Failure == "" })
	rule := func(s Sentinel) Finding { return sentinelAnswers(s, named) }
	var all []Finding
	for _, s := range sentinels {
		all = append(all, applied(s.Server, s, rule)...)
	}
	return all
}

// sentinelAnswers judges a sentinel. named reports whether at least one sentinel names the
// master.
func sentinelAnswers(s Sentinel, named bool) Finding {
	const code = "redis_sentinel"
	switch {
	case s.Failure != "" && !named:
		return serious(code, "REDIS_URL, or the sentinel", "All cart calls get a 503, because no sentinel names the master: %s.", s.Failure)
	case s.Failure != "":
		return warning(code, "REDIS_URL, or the sentinel", "This sentinel does not name the master: %s.", s.Failure)
	case s.Hidden:
		return unknown(code, "SENTINEL CKQUORUM", "It is not visible whether enough sentinels can agree on a failover.")
	case s.Quorum != "":
		return serious(code, "sentinel monitor, or the number of sentinels",
			"If the master fails, no replica replaces it, and all cart calls get a 503: %s.", s.Quorum)
	}
	return ok(code, "Enough sentinels can agree on a failover.")
}

// Cluster is how a node describes a cluster.
type Cluster struct {
	Server string // the node
	Slots  int    // how many slots have a master
}

// clusterSlots is the number of slots of every cluster.
const clusterSlots = 16384

func judgeCluster(c Cluster) Finding {
	const code = "redis_slots"
	f := ok(code, "Every slot of the cluster has a master.")
	if missing := clusterSlots - c.Slots; missing > 0 {
		f = serious(code, "redis-cli --cluster fix", "Calls for some carts get a 503, because %d of %d slots of the cluster have no master.", missing, clusterSlots)
	}
	f.Server = c.Server
	return f
}

func redisCoverage(r Redis) Finding {
	const code, setting = "redis_coverage", "cluster-require-full-coverage"
	if r.Kind != Clustered {
		return Finding{}
	}
	switch value, known := r.Config[setting]; {
	case !known:
		return unknown(code, setting, "It is not visible whether the loss of one shard affects the carts of all shards.")
	case value != "no":
		return warning(code, setting+" no", "If one shard is lost, calls for the carts of all shards get a 503.")
	}
	return ok(code, "If one shard is lost, the other shards still serve their carts.")
}
