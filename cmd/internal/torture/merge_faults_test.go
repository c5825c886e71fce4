package torture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// faults are the faults of a cluster and of the instances during merges. The faults of the
// cluster come one after another. Two at the same time, such as the loss of a master and of its
// only replica, or of a master that has just got a slot, lose data whatever the service does.
type faults struct {
	m      *merges
	t      *testing.T
	nodes  []*redisNode
	kinds  []faultKind
	counts map[string]int64
	turn   int

	timeline  []string // for the report of a failure
	failovers [][2]time.Time

	stopped sync.Once
	quit    chan struct{}
	all     sync.WaitGroup
	kills   int64 // of instances
}

// faultKind is one kind of fault. do reports whether the fault happened.
type faultKind struct {
	name string
	do   func(f *faults) bool
}

func startFaults(m *merges) *faults {
	f := &faults{m: m, t: m.t, counts: map[string]int64{}, quit: make(chan struct{})}
	for _, server := range m.cluster.Nodes {
		f.nodes = append(f.nodes, &redisNode{server, server.Admin()})
	}
	f.kinds = []faultKind{
		{"slots moved", (*faults).moveSlot},
		{"replicas cut off for a moment", (*faults).cutReplica},
		{"masters killed", (*faults).killMaster},
		{"replication links dropped", (*faults).dropLinks},
		{"connections of instances closed", (*faults).closeConnections},
		{"nodes frozen for a moment", (*faults).freezeNode},
		{"masters killed while their replica was cut off", (*faults).killMasterWithoutReplica},
		{"masters frozen until they were replaced", (*faults).freezeMaster},
	}
	if *long {
		f.kinds = append(f.kinds, faultKind{"replicas frozen until they count as dead", (*faults).freezeReplica},
			faultKind{"slots moved", (*faults).moveSlot})
	}
	f.all.Go(f.killInstances)
	return f
}

func (f *faults) next() {
	kind := f.kinds[f.turn%len(f.kinds)]
	f.turn++
	began, before := time.Now(), f.masters()
	if kind.do(f) {
		f.counts[kind.name]++
		f.timeline = append(f.timeline, fmt.Sprintf("%s to %s: %s", clock(began), clock(time.Now()), kind.name))
	}
	if f.masters() != before {
		f.failovers = append(f.failovers, [2]time.Time{began, time.Now()})
	}
	f.pause(sized(50, 300))
}

// failedOver reports whether a replica replaced a master in a span of time.
func (f *faults) failedOver(from, to time.Time) bool {
	return slices.ContainsFunc(f.failovers, func(span [2]time.Time) bool { return span[0].Before(to) && span[1].After(from) })
}

func (f *faults) complete() bool { return f.turn >= len(f.kinds) }

// end stops the faults. It may be called twice.
func (f *faults) end() {
	f.stopped.Do(func() { close(f.quit) })
	f.all.Wait()
}

func (f *faults) report() {
	if f.t.Failed() {
		f.t.Logf("faults:\n%s", strings.Join(f.timeline, "\n"))
	}
	f.counts["instances killed"] = f.kills
	reported := map[string]bool{}
	for _, kind := range append(f.kinds, faultKind{name: "instances killed"}) {
		if reported[kind.name] {
			continue
		}
		reported[kind.name] = true
		f.m.p.detail(kind.name, float64(f.counts[kind.name]), "")
		assert.That(f.t, f.counts[kind.name] != 0, "no %s happened, so the test shows nothing", kind.name)
	}
}

func (f *faults) pause(ms int) { time.Sleep(time.Duration(rand.IntN(ms)) * time.Millisecond) }

// killInstances kills one instance at a time with SIGKILL, and starts it again.
func (f *faults) killInstances() {
	for {
		select {
		case <-f.quit:
			return
		case <-time.After(time.Second + rand.N(sized(time.Second, 4*time.Second))):
		}
		s := f.m.instances[rand.IntN(len(f.m.instances))]
		s.kill()
		f.pause(200)
		s.start()
		f.kills++
	}
}

func (f *faults) killMaster() bool {
	master, replica := f.shard()
	master.Kill()
	f.succeeded(replica)
	f.pause(500)
	f.rejoin(master, replica)
	return true
}

// cut disconnects a replica from its master until the returned function is called. The
// cluster's nodes keep seeing each other, so the replica can become master.
func (f *faults) cut(master, replica *redisNode) (mend func()) {
	ctx := f.t.Context()
	f.do(replica.admin.ConfigSet(ctx, "masterauth", "no master takes this"))
	f.do(master.admin.Do(ctx, "client", "kill", "type", "replica"))
	return func() { f.do(replica.admin.ConfigSet(ctx, "masterauth", "")) }
}

func (f *faults) cutReplica() bool {
	master, replica := f.shard()
	mend := f.cut(master, replica)
	f.pause(1000)
	mend()
	f.whole(master, replica)
	return true
}

// killMasterWithoutReplica kills a master whose replica lacks the last changes.
func (f *faults) killMasterWithoutReplica() bool {
	master, replica := f.shard()
	mend := f.cut(master, replica)
	f.pause(700)
	if !f.says(master, "role:master") || !f.says(replica, "role:slave") || f.says(replica, "master_link_status:up") {
		mend()
		f.whole(master, replica)
		return false
	}
	master.Kill()
	f.succeeded(replica)
	mend()
	f.rejoin(master, replica)
	return true
}

// dropLinks closes a replica's connection again and again. The replica reconnects each time.
func (f *faults) dropLinks() bool {
	master, _ := f.shard()
	for range 10 {
		f.do(master.admin.Do(f.t.Context(), "client", "kill", "type", "replica"))
		f.pause(100)
	}
	return true
}

// closeConnections loses the replies on their way, although their commands ran.
func (f *faults) closeConnections() bool {
	for range 10 {
		for _, n := range f.nodes {
			f.do(n.admin.Do(f.t.Context(), "client", "kill", "type", "normal"))
		}
		f.pause(60)
	}
	return true
}

func (f *faults) freezeNode() bool {
	master, replica := f.shard()
	n := []*redisNode{master, replica}[rand.IntN(2)]
	n.Freeze()
	f.pause(500)
	n.Thaw()
	return true
}

func (f *faults) freezeReplica() bool {
	master, replica := f.shard()
	replica.Freeze()
	time.Sleep(1500 * time.Millisecond)
	replica.Thaw()
	f.whole(master, replica)
	return true
}

// freezeMaster suspends a master until its replica has replaced it. When the node resumes, it
// still acts as a master for a moment.
func (f *faults) freezeMaster() bool {
	master, replica := f.shard()
	master.Freeze()
	f.succeeded(replica)
	f.pause(500)
	master.Thaw()
	f.patience(longPatience)
	f.whole(master, replica)
	f.patience(shortPatience)
	return true
}
