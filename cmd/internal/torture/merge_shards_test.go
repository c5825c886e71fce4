package torture

import (
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// healLimit is how long a cluster may take to replace a master, or a replica to catch up.
var healLimit = ephemeral.Patience(time.Minute)

func (f *faults) masters() (found [6]bool) {
	for i, n := range f.nodes {
		found[i] = f.says(n, "role:master")
	}
	return found
}

func (f *faults) says(n *redisNode, line string) bool {
	return strings.Contains(n.admin.Info(f.t.Context(), "replication").Val(), line)
}

func (f *faults) await(what string, done func() bool) {
	f.t.Helper()
	for began := time.Now(); !done(); time.Sleep(10 * time.Millisecond) {
		assert.Require(f.t, time.Since(began) <= healLimit, "not within %v: %s", healLimit, what)
	}
}

// shard returns the master and the replica of a random shard. The replica has everything that
// the master had when shard was called.
func (f *faults) shard() (master, replica *redisNode) {
	i := rand.IntN(3)
	return f.whole(f.nodes[i], f.nodes[i+3])
}

// whole waits until one node of a shard follows the other: they may change roles.
func (f *faults) whole(one, other *redisNode) (master, replica *redisNode) {
	f.t.Helper()
	f.await("a replica follows its master", func() bool {
		master, replica = one, other
		if f.says(other, "role:master") {
			master, replica = other, one
		}
		return f.says(master, "role:master") && f.says(replica, "role:slave") && f.says(replica, "master_link_status:up")
	})
	return master, replica
}

func (f *faults) succeeded(replica *redisNode) {
	f.t.Helper()
	f.await("a replica is the master", func() bool { return f.says(replica, "role:master") })
}

// rejoin restarts a dead node as the replica of its successor. Until it has all data, it
// must not become master.
func (f *faults) rejoin(dead, successor *redisNode) {
	f.patience(longPatience)
	dead.Restart()
	f.patience(longPatience)
	f.whole(dead, successor)
	f.patience(shortPatience)
}

// Node timeouts in milliseconds: a node that does not respond for so long is replaced. On a
// busy machine, nodes are sometimes slow.
const shortPatience, longPatience = "1000", "30000"

func (f *faults) patience(ms string) {
	for _, n := range f.nodes {
		_ = n.admin.ConfigSet(f.t.Context(), "cluster-node-timeout", ms)
	}
}

func (f *faults) do(cmd redis.Cmder) {
	f.t.Helper()
	if err := cmd.Err(); err != nil {
		f.t.Fatalf("%v: %v", cmd.Args(), err)
	}
}

// moveSlot moves the slot of a cart that is in use to another master, as operators do. For a
// while, some of its keys are on the old master and some on the new one.
func (f *faults) moveSlot() bool {
	key := f.m.someKey()
	from, to := f.owner(key), f.otherMaster(key)
	if from == nil || to == nil {
		return false
	}
	f.patience(longPatience) // a failover now would lose the slot and the keys that have moved
	defer f.patience(shortPatience)
	ctx := f.t.Context()
	slot := from.admin.ClusterKeySlot(ctx, key).Val()
	number := strconv.FormatInt(slot, 10)
	fromID, toID := from.admin.ClusterMyID(ctx).Val(), to.admin.ClusterMyID(ctx).Val()
	f.do(to.admin.Do(ctx, "cluster", "setslot", number, "importing", fromID))
	f.do(from.admin.Do(ctx, "cluster", "setslot", number, "migrating", toID))
	f.pause(100)
	for {
		keys := from.admin.ClusterGetKeysInSlot(ctx, int(slot), 100).Val()
		if len(keys) == 0 {
			break
		}
		f.migrate(from, to, keys[:1+rand.IntN(len(keys))])
		f.pause(50)
	}
	f.do(to.admin.Do(ctx, "cluster", "setslot", number, "node", toID))
	f.do(from.admin.Do(ctx, "cluster", "setslot", number, "node", toID))
	f.await("all nodes know where a slot is", func() bool { return f.known(key, number, to) })
	moved, _ := offsets(to.admin.Info(ctx, "replication").Val())
	f.await("the slot's new replica has its keys", func() bool {
		_, replica := offsets(to.admin.Info(ctx, "replication").Val())
		return replica >= moved
	})
	return true
}

func (f *faults) owner(key string) *redisNode {
	for _, n := range f.nodes {
		if n.admin.Type(f.t.Context(), key).Err() == nil {
			return n
		}
	}
	return nil
}

// otherMaster returns a random master that does not serve a key, or nil if there is none.
func (f *faults) otherMaster(key string) *redisNode {
	var found []*redisNode
	for _, n := range f.nodes {
		if f.says(n, "role:master") && n.admin.Type(f.t.Context(), key).Err() != nil {
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[rand.IntN(len(found))]
}

func (f *faults) migrate(from, to *redisNode, keys []string) {
	host, port, err := net.SplitHostPort(to.admin.Options().Addr)
	assert.NoError(f.t, err)
	args := []any{"migrate", host, port, "", 0, 5000, "keys"}
	for _, key := range keys {
		args = append(args, key)
	}
	f.do(from.admin.Do(f.t.Context(), args...))
}

// known reports whether all nodes say that a master serves a slot.
func (f *faults) known(key, slot string, master *redisNode) bool {
	for _, n := range f.nodes {
		err := n.admin.Type(f.t.Context(), key).Err()
		switch {
		case n == master && err == nil:
		case err != nil && err.Error() == "MOVED "+slot+" "+master.admin.Options().Addr:
		default:
			return false
		}
	}
	return true
}

// offsets returns those of a master and of its replica, by INFO REPLICATION.
func offsets(info string) (master, replica int64) {
	for line := range strings.Lines(info) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "master_repl_offset:"); ok {
			master, _ = strconv.ParseInt(rest, 10, 64)
		}
		if _, rest, ok := strings.Cut(line, ",offset="); ok {
			rest, _, _ = strings.Cut(rest, ",")
			replica, _ = strconv.ParseInt(rest, 10, 64)
		}
	}
	return master, replica
}
