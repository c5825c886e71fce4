package torture

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// healLimit is how long a cluster may take to replace a master, or a replica to catch up.
const healLimit = time.Minute

// clusterNode is a node, with a client that has all rights.
type clusterNode struct {
	*ephemeral.Server
	admin *redis.Client
}

// masters returns which nodes are masters now.
func (f *faults) masters() (found [6]bool) {
	for i, n := range f.nodes {
		found[i] = f.says(n, "role:master")
	}
	return found
}

// says reports whether a node's INFO REPLICATION has a line.
func (f *faults) says(n *clusterNode, line string) bool {
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
func (f *faults) shard() (master, replica *clusterNode) {
	i := rand.IntN(3)
	return f.whole(f.nodes[i], f.nodes[i+3])
}

// whole waits until one node of a shard follows the other. On a busy machine, they may
// change roles at any time.
func (f *faults) whole(one, other *clusterNode) (master, replica *clusterNode) {
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

// succeeded waits until a replica has replaced its dead or frozen master.
func (f *faults) succeeded(replica *clusterNode) {
	f.t.Helper()
	f.await("a replica is the master", func() bool { return f.says(replica, "role:master") })
}

// rejoin restarts a dead node as the replica of its successor. Until it has all data, it
// must not become master.
func (f *faults) rejoin(dead, successor *clusterNode) {
	f.patience(longPatience)
	dead.Restart()
	f.patience(longPatience)
	f.whole(dead, successor)
	f.patience(shortPatience)
}

// Node timeouts in milliseconds: a node that does not respond for so long is replaced. On a
// busy machine, nodes are sometimes slow.
const shortPatience, longPatience = "1000", "30000"

// patience sets the node timeout of all running nodes.
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
