package observe

import (
	"context"
	"errors"
	"maps"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/inspect"
)

// found is a master, with the addresses of its replicas.
type found struct {
	inspect.Redis
	replicas []string
}

func (r reader) master(ctx context.Context, addr string) found {
	var f found
	f.Redis = r.server(ctx, addr, func(client *redis.Client, read *inspect.Redis) {
		f.replicas = role(ctx, client, read)
		read.Listed = r.listed(ctx, client)
		r.tryCommands(ctx, client, read)
	})
	return f
}

func (r reader) replica(ctx context.Context, addr string) inspect.Redis {
	read := r.server(ctx, addr, func(*redis.Client, *inspect.Redis) {})
	read.Replica = true
	return read
}

// server reads one server. If the server answers, more reads further values.
func (r reader) server(ctx context.Context, addr string, more func(*redis.Client, *inspect.Redis)) inspect.Redis {
	read := inspect.Redis{Server: addr, Kind: r.kind}
	client := r.servers.Server(addr)
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil && !redis.HasErrorPrefix(err, "MISCONF") { // a failed snapshot
		read.Failure = failure(err)
		return read
	}
	sent := r.now()
	if at, err := client.Time(ctx).Result(); err == nil {
		read.Clock = clock(at, sent, r.now())
	}
	read.Info = info(ctx, client)
	read.Config = config(ctx, client)
	read.Replays = replays(ctx, client)
	more(client, &read)
	return read
}

// info returns the fields of INFO by name. No name is in two sections.
func info(ctx context.Context, client *redis.Client) map[string]string {
	fields := map[string]string{}
	for _, section := range client.InfoMap(ctx).Val() {
		maps.Copy(fields, section)
	}
	return fields
}

// config returns the settings that package inspect judges. A server that hides one setting still
// shows the others.
func config(ctx context.Context, client *redis.Client) map[string]string {
	settings := map[string]string{}
	pipe := client.Pipeline()
	var cmds []*redis.MapStringStringCmd
	for _, name := range []string{
		"maxmemory-policy", "appendonly", "appendfsync", "save", "min-replicas-to-write", "cluster-require-full-coverage",
	} {
		cmds = append(cmds, pipe.ConfigGet(ctx, name))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for _, cmd := range cmds {
		maps.Copy(settings, cmd.Val())
	}
	return settings
}

// replays reports whether the user default has the rights to run what the service's scripts
// write to the append-only file; nil if that is hidden. Redis checks these rights when it loads
// the transactions in the file.
func replays(ctx context.Context, client *redis.Client) *bool {
	for _, write := range [][]any{
		{"hset", nobody, "i", ""},
		{"hsetnx", nobody, "i", ""},
		{"hdel", nobody, "i"},
		{"del", nobody},
		{"rename", nobody, nobody},
		{"pexpireat", nobody, 0}, // what PEXPIRE becomes in the file
		{"hset", "limit:check", "0", ""},
	} {
		answer, err := client.ACLDryRun(ctx, "default", write...).Result()
		switch {
		case err != nil:
			return nil
		case answer != "OK": // says which right is missing
			return new(false)
		}
	}
	return new(true)
}

// role reads whether the server is a master, and returns the addresses of its connected
// replicas.
func role(ctx context.Context, client *redis.Client, read *inspect.Redis) (replicas []string) {
	cmd := redis.NewSliceCmd(ctx, "role")
	_ = client.Process(ctx, cmd)
	reply := cmd.Val()
	if len(reply) == 0 {
		return nil
	}
	read.Role, _ = reply[0].(string)
	if read.Role != "master" || len(reply) < 3 {
		return nil
	}
	list, _ := reply[2].([]any)
	read.Connected = new(len(list))
	for _, one := range list {
		if at, _ := one.([]any); len(at) >= 2 {
			host, _ := at[0].(string)
			port, _ := at[1].(string)
			replicas = append(replicas, net.JoinHostPort(host, port))
		}
	}
	return replicas
}

// nobody is the key of a cart in a store that does not exist.
const nobody = "cart:{0:c:check}"

// tryCommands runs commands of the service, on a key that never exists, so that they change
// nothing. Only HSET and HSETNX cannot be tried. Redis checks the user's rights
// before anything else, so wrong arguments do not matter.
func (r reader) tryCommands(ctx context.Context, client *redis.Client, read *inspect.Redis) {
	read.ReadsCarts = !refused(client.HGetAll(ctx, nobody).Err())
	if !read.ReadsCarts {
		return // not the service's user; Redis would log each refused command
	}
	type try struct {
		name string
		err  error
	}
	tries := []try{
		{"eval", client.Eval(ctx, "return 1", []string{nobody}).Err()},
		{"evalsha", client.EvalSha(ctx, "0000000000000000000000000000000000000000", []string{nobody}).Err()},
		{"exists", client.Exists(ctx, nobody).Err()},
		{"del", client.Del(ctx, nobody).Err()},
		{"hdel", client.HDel(ctx, nobody, "i").Err()},
		{"pexpire", client.PExpire(ctx, nobody, time.Minute).Err()},
		{"rename", client.Rename(ctx, nobody, nobody).Err()},
		{"hget", client.HGet(ctx, nobody, "i").Err()},
		{"hlen", client.HLen(ctx, nobody).Err()},
		{"pttl", client.PTTL(ctx, nobody).Err()},
		{"time", client.Time(ctx).Err()},
		{"role", client.Process(ctx, redis.NewSliceCmd(ctx, "role"))},
		{"wait", client.Wait(ctx, 0, time.Millisecond).Err()},
		{inspect.LimitKeys, client.HGet(ctx, "limit:check", "0").Err()},
	}
	if r.kind == inspect.Clustered {
		tries = append(tries, try{"cluster|nodes", client.ClusterNodes(ctx).Err()})
	}
	for _, t := range tries {
		if refused(t.err) {
			read.Refused = append(read.Refused, t.name)
		}
	}
}

// refused reports whether Redis refused the command itself.
func refused(err error) bool {
	reply, is := errors.AsType[redis.Error](err)
	return is && (redis.IsPermissionError(reply) || redis.HasErrorPrefix(reply, "ERR unknown command"))
}
