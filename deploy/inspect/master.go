package inspect

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Checks that concern only masters: their replicas, and the rights of the service's user.

// hidden is a number of replicas that the server does not show.
const hidden = -1

// readRole returns "master" or "slave", or "" if that is hidden, and how many replicas of a
// master are connected and answer. It sets their addresses.
func (s *redisServer) readRole(ctx context.Context, client *redis.Client) (role string, connected int) {
	reply, _ := client.Do(ctx, "role").Slice()
	if len(reply) == 0 {
		return "", hidden
	}
	role, _ = reply[0].(string)
	if role != "master" || len(reply) < 3 {
		return role, hidden
	}
	list, _ := reply[2].([]any)
	for _, one := range list {
		if at, _ := one.([]any); len(at) >= 2 {
			s.replicas = append(s.replicas, net.JoinHostPort(fmt.Sprint(at[0]), fmt.Sprint(at[1])))
		}
	}
	return role, max(len(list)-s.silent(), 0)
}

// maxLag is after how many seconds Redis, by default, no longer counts a replica that acknowledges nothing.
const maxLag = 10

// silent returns how many replicas are connected but hang, or cannot be reached. Redis disconnects them after a minute.
func (s *redisServer) silent() (n int) {
	for _, field := range s.info {
		if _, after, found := strings.Cut(field, ",lag="); found { // such as slave0:ip=…,port=…,state=online,offset=…,lag=0
			lag, _, _ := strings.Cut(after, ",")
			if seconds, err := strconv.Atoi(lag); err == nil && seconds > maxLag {
				n++
			}
		}
	}
	return n
}

func (s *redisServer) judgeRole(role string) {
	s.judge("redis_role",
		unknown(role == "", "ROLE", "It is not visible whether this server is a master."),
		serious(role != "master", "REDIS_URL", "All cart calls get a 503, because this server is a replica."),
		serious(!s.Clustered() && !s.watched() && s.info["cluster_enabled"] == "1", "REDIS_URL: add ?cluster=true",
			"Calls for the carts of other nodes get a 503, because this server is a node of a cluster."),
		ok("This server is a master."))
}

func (s *redisServer) judgeReplicas(connected int) {
	s.judge("redis_replicas",
		unknown(connected == hidden, "ROLE", "It is not visible how many replicas are connected."),
		serious(connected == 0 && s.expect.Durable, "replicaof on another server",
			"With DURABILITY=replica, no change is confirmed, because no replica is connected."),
		warning(connected == 0, "replicaof on another server", "If this machine is lost, its carts are lost, because no replica is connected."),
		ok("Connected replicas: %d.", connected))
	s.findings[len(s.findings)-1].Connected = connected
}

// judgeMerges compares the replicas that a merge waits for with those that can confirm it
// (see docs/operations.md, "Replicas and merges").
func (s *redisServer) judgeMerges(connected, listed int) {
	s.judge("redis_merges",
		unknown(connected == hidden || listed == hidden, "ROLE, and CLUSTER NODES or SENTINEL REPLICAS",
			"It is not visible whether all replicas that merges on login wait for are connected."),
		serious(s.expect.MinReplicas > connected, "REDIS_MIN_REPLICAS, or replicaof on more servers",
			"Merges on login never complete: they wait for %d replicas, but only %d are connected.", s.expect.MinReplicas, connected),
		serious(listed > connected, "replicaof, masteruser and masterauth of the replicas",
			"Merges on login do not complete: they wait for all %d listed replicas, but only %d are connected.", listed, connected),
		ok("All replicas that merges on login wait for are connected."))
}

func (s *redisServer) judgeWrites(connected int) {
	const setting = "min-replicas-to-write"
	wanted, err := strconv.ParseInt(s.settings[setting], 10, 64)
	good, known := s.number("min_slaves_good_slaves")
	s.judge("redis_min_replicas_to_write",
		unknown(err != nil, setting, "It is not visible whether Redis refuses changes when it has too few replicas."),
		unknown(wanted > 0 && !known, "min_slaves_good_slaves of INFO",
			"Redis refuses changes if it has fewer than %d replicas. It is not visible how many it has.", wanted),
		serious(wanted > good, setting, "Redis refuses all changes (503): it requires %d replicas, but only %d are up to date.", wanted, good),
		warning(wanted == 0 && s.watched() && connected > 1, setting+" 1",
			"A master that loses contact with its replicas and sentinels still accepts changes. They are lost when another master replaces it."),
		ok("Redis has the replicas that it requires (%d).", wanted))
}

// nobody is the key of a cart in a store that does not exist.
const nobody = "cart:{0:c:check}"

// judgeRights tries commands of the service, on a key that never exists, so that they change
// nothing. Only HSET and HSETNX cannot be tried. It judges only users that may read carts, since
// others, such as check, are not the service's.
func (s *redisServer) judgeRights(ctx context.Context, client *redis.Client) {
	const code, setting = "redis_rights", "the rights of this user (deploy/redis/users.conf)"
	if refused(ctx, client, "hgetall "+nobody) != "" { // Redis would log each further command
		s.judge(code, serious(s.expect.Serving, setting, "All cart calls get a 503, because the user may not read carts (hgetall on cart:*)."))
		return
	}
	essential := refused(ctx, client, "eval return 1 "+nobody, "evalsha 0 1 "+nobody, "exists "+nobody, "del "+nobody, "hdel "+nobody+" i",
		"pexpire "+nobody+" 1000", "rename "+nobody+" "+nobody, "hget "+nobody+" i", "hlen "+nobody, "pttl "+nobody, "time")
	ofMerges := []string{"role", "wait 0 1"}
	if s.Clustered() {
		ofMerges = append(ofMerges, "cluster|nodes")
	}
	waits, streams := refused(ctx, client, ofMerges...), announces(ctx, client)
	s.judge(code,
		serious(essential != "", setting, "Cart calls get a 503, because the user may not run %s.", essential),
		warning(waits != "", setting, "If there are replicas, a failover can lose a merge on login, because the user may not run %s.", waits),
		warning(refused(ctx, client, "hget limit:check 0") != "", setting,
			"Each instance counts alone what clients have used up, because the user may not access the keys limit:*."),
		warning(streams != "", setting, "Streams of events get a 503, because the user may not run %s on the channels cart:*.", streams),
		ok("The user may run the commands that were tried."))
}

// announces returns the commands of streams of events that Redis refuses to this user.
func announces(ctx context.Context, client *redis.Client) string {
	const live = nobody + ":live"
	names := refused(ctx, client, "publish "+live+" x", "spublish "+live+" x")
	stream := client.SSubscribe(ctx, live)
	defer stream.Close()
	if _, err := stream.Receive(ctx); redis.HasErrorPrefix(err, "NOPERM") {
		names = strings.TrimPrefix(names+", ssubscribe", ", ")
	}
	return names
}

// refused returns the names of the commands that Redis refuses to this user, or does not know.
func refused(ctx context.Context, client *redis.Client, commands ...string) string {
	var names []string
	for _, command := range commands {
		if err := client.Do(ctx, words(command)...).Err(); redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown command") {
			name, _, _ := strings.Cut(command, " ")
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// words returns the words of a command. The first can have a subcommand, as in "cluster|nodes".
func words(command string) (all []any) {
	for word := range strings.FieldsSeq(strings.Replace(command, "|", " ", 1)) {
		all = append(all, word)
	}
	return all
}
