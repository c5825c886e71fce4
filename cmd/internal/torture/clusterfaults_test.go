package torture

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// faults are the faults of a cluster of three masters, each with a replica, and of the instances. The faults of the
// cluster come one after another. Two at the same time, such as the loss of a master and of its
// only replica, or of a master that has just got a slot, lose data whatever the service does.
type faults struct {
	p         *promise
	t         *testing.T
	instances []*service
	nodes     []redisNode
	someKey   func() string // of a cart that is in use

	counts    map[string]int64
	timeline  []string // for the report of a failure
	masters   [6]bool
	seen      time.Time // when the masters were last looked at
	failovers [][2]time.Time
	kills     int64 // of instances
}

type clusterFault struct {
	name string
	do   func(f *faults, master, replica redisNode) bool
	long bool // only in the long form
}

// clusterFaults happen to a random shard whose replica has everything that its master has. Each reports whether it happened.
var clusterFaults = []clusterFault{
	{name: "slots moved", do: (*faults).moveSlot},
	{name: "replicas cut off for a moment", do: func(f *faults, master, replica redisNode) bool {
		mend := f.cut(master, replica)
		pause(1000)
		mend()
		return true
	}},
	{name: "masters killed", do: func(f *faults, master, replica redisNode) bool {
		master.Kill()
		f.succeeded(replica)
		pause(500)
		f.rejoin(master)
		return true
	}},
	{name: "replication links dropped", do: func(f *faults, master, _ redisNode) bool {
		for range 10 {
			f.do(master.admin.Do(f.t.Context(), "client", "kill", "type", "replica"))
			pause(100)
		}
		return true
	}},
	{name: "connections of instances closed", do: func(f *faults, _, _ redisNode) bool { // their commands may have run
		for range 10 {
			for _, n := range f.nodes {
				f.do(n.admin.Do(f.t.Context(), "client", "kill", "type", "normal"))
			}
			pause(60)
		}
		return true
	}},
	{name: "nodes frozen for a moment", do: func(_ *faults, master, replica redisNode) bool {
		n := []redisNode{master, replica}[rand.IntN(2)]
		n.Freeze()
		pause(500)
		n.Thaw()
		return true
	}},
	{name: "masters killed while their replica was cut off", do: (*faults).killMasterWithoutReplica},
	// When the node resumes, it still acts as a master for a moment.
	{name: "masters frozen until they were replaced", do: func(f *faults, master, replica redisNode) bool {
		master.Freeze()
		f.succeeded(replica)
		pause(500)
		master.Thaw()
		f.patience(longPatience)
		return true
	}},
	{name: "replicas frozen until they count as dead", long: true, do: func(_ *faults, _, replica redisNode) bool {
		replica.Freeze()
		time.Sleep(1500 * time.Millisecond)
		replica.Thaw()
		return true
	}},
}

func pause(ms int) { time.Sleep(rand.N(time.Duration(ms) * time.Millisecond)) }

// during makes faults until a load has reached what is wanted and each fault has happened. Then it ends the load with stop.
func (f *faults) during(stop func(), what string, wanted int64, reached func() int64) {
	f.t.Helper()
	f.look()
	defer f.look()
	defer stop()
	bar := f.p.progress(what, int(wanted))
	quit := make(chan struct{})
	var killing sync.WaitGroup
	killing.Go(func() { f.killInstances(quit) })
	defer killing.Wait()
	defer close(quit)
	limit := ephemeral.Patience(sized(2*time.Minute, 10*time.Minute))
	kinds := slices.DeleteFunc(slices.Clone(clusterFaults), func(kind clusterFault) bool { return kind.long && !*long })
	for _, kind := range kinds {
		f.counts[kind.name] = 0
	}
	lacks := func() bool { return slices.Contains(slices.Collect(maps.Values(f.counts)), 0) }
	began := time.Now()
	for turn := 0; (reached() < wanted || lacks()) && time.Since(began) < limit && !f.t.Failed(); turn++ {
		f.make(kinds[turn%len(kinds)])
		_ = bar.Set64(min(wanted, reached()))
	}
	assert.That(f.t, reached() >= wanted, "only %d %s in %v, want %d", reached(), what, time.Since(began), wanted)
}

func (f *faults) make(kind clusterFault) {
	i := rand.IntN(3)
	master, replica := f.whole(f.nodes[i], f.nodes[i+3])
	began := time.Now()
	if kind.do(f, master, replica) {
		f.counts[kind.name]++
		f.timeline = append(f.timeline, fmt.Sprintf("%s to %s: %s", clock(began), clock(time.Now()), kind.name))
	}
	f.whole(master, replica)
	f.patience(shortPatience)
	f.look()
	pause(sized(50, 300))
}

// failedOver reports whether a replica replaced a master in a span of time.
func (f *faults) failedOver(from, to time.Time) bool {
	return slices.ContainsFunc(f.failovers, func(span [2]time.Time) bool { return span[0].Before(to) && span[1].After(from) })
}

func (f *faults) report() {
	if f.t.Failed() {
		f.t.Logf("faults:\n%s", strings.Join(f.timeline, "\n"))
	}
	f.p.tried("instances killed", f.kills)
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		f.p.tried(name, f.counts[name])
	}
}

// killInstances kills one instance at a time with SIGKILL, and starts it again.
func (f *faults) killInstances(quit <-chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case <-time.After(time.Second + rand.N(sized(time.Second, 4*time.Second))):
		}
		s := f.instances[rand.IntN(len(f.instances))]
		s.kill()
		pause(200)
		s.start()
		f.kills++
	}
}

// cut disconnects a replica from its master until the returned function is called. The
// cluster's nodes keep seeing each other, so the replica can become master.
func (f *faults) cut(master, replica redisNode) (mend func()) {
	ctx := f.t.Context()
	f.do(replica.admin.ConfigSet(ctx, "masterauth", "no master takes this"))
	f.do(master.admin.Do(ctx, "client", "kill", "type", "replica"))
	return func() { f.do(replica.admin.ConfigSet(ctx, "masterauth", "")) }
}

// killMasterWithoutReplica kills a master whose replica lacks the last changes.
func (f *faults) killMasterWithoutReplica(master, replica redisNode) bool {
	mend := f.cut(master, replica)
	pause(700)
	if !master.says("role:master") || !replica.says("role:slave") || replica.says("master_link_status:up") {
		mend()
		return false
	}
	master.Kill()
	f.succeeded(replica)
	mend()
	f.rejoin(master)
	return true
}

// look records a failover if the masters are others than at the last look.
func (f *faults) look() {
	var now [6]bool
	for i, n := range f.nodes {
		now[i] = n.says("role:master")
	}
	if now != f.masters && !f.seen.IsZero() {
		f.failovers = append(f.failovers, [2]time.Time{f.seen, time.Now()})
	}
	f.masters, f.seen = now, time.Now()
}

// whole waits until one node of a shard follows the other: they may change roles.
func (f *faults) whole(one, other redisNode) (master, replica redisNode) {
	f.t.Helper()
	ephemeral.Eventually(f.t, "a replica follows its master", func() bool {
		master, replica = one, other
		if other.says("role:master") {
			master, replica = other, one
		}
		return master.says("role:master") && replica.says("role:slave") && replica.says("master_link_status:up")
	})
	return master, replica
}

func (f *faults) succeeded(replica redisNode) {
	f.t.Helper()
	ephemeral.Eventually(f.t, "a replica is the master", func() bool { return replica.says("role:master") })
}

// rejoin restarts a dead node as the replica of its successor. Until it has all data, it
// must not become master.
func (f *faults) rejoin(dead redisNode) {
	f.patience(longPatience)
	dead.Restart()
	f.patience(longPatience)
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
	assert.Require(f.t, cmd.Err() == nil, "%v: %v", cmd.Args(), cmd.Err())
}

// moveSlot moves the slot of a cart that is in use to another master, as operators do. For a
// while, some of its keys are on the old master and some on the new one.
func (f *faults) moveSlot(redisNode, redisNode) bool {
	ctx, key := f.t.Context(), f.someKey()
	serves := func(n redisNode) bool { return n.admin.Type(ctx, key).Err() == nil }
	at := slices.IndexFunc(f.nodes, serves)
	others := slices.DeleteFunc(slices.Clone(f.nodes), func(n redisNode) bool { return serves(n) || !n.says("role:master") })
	if at < 0 || len(others) == 0 {
		return false
	}
	f.patience(longPatience) // a failover now would lose the slot and the keys that have moved
	from, to := f.nodes[at].admin, others[rand.IntN(len(others))]
	slot := from.ClusterKeySlot(ctx, key).Val()
	number := strconv.FormatInt(slot, 10)
	fromID, toID := from.ClusterMyID(ctx).Val(), to.admin.ClusterMyID(ctx).Val()
	f.do(to.admin.Do(ctx, "cluster", "setslot", number, "importing", fromID))
	f.do(from.Do(ctx, "cluster", "setslot", number, "migrating", toID))
	pause(100)
	host, port := to.addr()
	for keys := from.ClusterGetKeysInSlot(ctx, int(slot), 100).Val(); len(keys) > 0; keys = from.ClusterGetKeysInSlot(ctx, int(slot), 100).Val() {
		migrate := []any{"migrate", host, port, "", 0, 5000, "keys"}
		for _, key := range keys[:1+rand.IntN(len(keys))] {
			migrate = append(migrate, key)
		}
		f.do(from.Do(ctx, migrate...))
		pause(50)
	}
	f.do(to.admin.Do(ctx, "cluster", "setslot", number, "node", toID))
	f.do(from.Do(ctx, "cluster", "setslot", number, "node", toID))
	moved := fmt.Sprintf("MOVED %s %s:%s", number, host, port)
	ephemeral.Eventually(f.t, "all nodes know where a slot is", func() bool {
		return !slices.ContainsFunc(f.nodes, func(n redisNode) bool {
			err := n.admin.Type(ctx, key).Err()
			return (n == to) != (err == nil) || err != nil && err.Error() != moved
		})
	})
	has, _ := to.offsets()
	ephemeral.Eventually(f.t, "the slot's new replica has its keys", func() bool {
		_, replica := to.offsets()
		return replica >= has
	})
	return true
}
