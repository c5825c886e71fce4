package redisstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/script"
	"commerce/cart/redisstore/layout"
)

// How long to wait. While replicas do not confirm, nothing waits for them, except one write in each
// slowFor, which probes them.
const (
	replicaWait  = 500 * time.Millisecond // of a write, for its replicas
	claimWait    = 50 * time.Millisecond  // of a claim, which continues without them
	probeWait    = 10 * time.Millisecond  // of a probe, at first
	longestProbe = 100 * time.Millisecond // an idle Redis ends a shorter WAIT only then, too
	listingWait  = 200 * time.Millisecond // for the sentinels' list of replicas
)

type replication struct {
	replicas  int       // replicas that could replace the master
	confirmed int       // how many of them confirmed the write in time
	replied   time.Time // when Redis replied, before the wait for replicas
}

// unsafeWrite is a write that a failover may lose.
var unsafeWrite = replication{replicas: 1}

func (p replication) survivesFailover() bool { return p.confirmed >= p.replicas }

// The Durability of a change that all replicas have, and of others.
const (
	Confirmed   = "confirmed"
	Unconfirmed = "unconfirmed"
)

func (p replication) durability() string {
	if p.replicas > 0 && p.survivesFailover() {
		return Confirmed
	}
	return Unconfirmed
}

// Replicate makes a write without effect in a cart's slot, waits for replicas for a limited time, and returns the Durability of
// everything written there before; Unconfirmed if the slot has neither a cart nor an idempotency key.
func (s *Store) Replicate(ctx context.Context, ref Ref) string {
	copies, err := s.step(ctx, "wait for replicas", []string{ref.CartKey(), ref.KeysKey()}, replicaWait, func(found *Slot) (*commit, error) {
		held, err := layout.Parse(found.hashes[0])
		switch keys := found.hashes[1]; {
		case err != nil:
			return nil, err
		case held.Number != "":
			return found.become(&held, held.Cell), nil
		case len(keys) > 1:
			c := found.commit()
			c.check(found.keys[1], keys[0], keys[1])
			c.write("HSET", found.keys[1], keys[0], keys[1])
			return c, nil
		}
		return nil, nil
	})
	if err != nil {
		copies = unsafeWrite
	}
	return copies.durability()
}

// run runs a script once, on the master of its first key, and waits, no longer than wait, until every
// replica of that master has confirmed it. With a wait of 0, nothing is known of replicas. WAIT
// covers only the last write of its own connection, so all commands use one. While the slot
// migrates to another node, the script runs there, and its write counts as unconfirmed.
func (s *Store) run(ctx context.Context, at located, c script.Script, wait time.Duration, keys []string, args ...any) (*redis.Cmd, replication) {
	if wait == 0 {
		cmd := c.Run(ctx, s.Client, script.Once, keys, args...)
		return cmd, replication{replied: s.clock()}
	}
	for try := 0; ; try++ {
		conn := at.client.Conn()
		cmd := c.Run(ctx, conn, script.Once, keys, args...)
		p, replied := unsafeWrite, s.clock()
		if cmd.Err() == nil {
			p = s.awaitReplicas(ctx, conn, at.master, wait)
		}
		_ = conn.Close()
		if redis.HasErrorPrefix(cmd.Err(), "ASK") {
			cmd, p.replied = c.Run(ctx, s.Client, script.Once, keys, args...), s.clock()
			return cmd, p
		}
		if try == redirections || !IsElsewhere(cmd.Err()) {
			p.replied = replied
			return cmd, p
		}
		moved, err := s.locateAgain(ctx, keys[0])
		if err != nil {
			cmd.SetErr(err)
			return cmd, unsafeWrite
		}
		at = moved
	}
}

// locateAgain finds the master that has a key after another one has refused it.
func (s *Store) locateAgain(ctx context.Context, key string) (located, error) {
	if cluster, ok := s.Client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx) // asynchronous, and no more often than every 200 ms
	}
	select {
	case <-time.After(redirectionPause):
	case <-ctx.Done():
	}
	return s.masterOf(ctx, key)
}

// How often and at what interval to look for the new master of a moved slot or after a
// failed dial, unless the request's time ends first. The first node that is asked may not
// know the new master yet.
const (
	redirections     = 25
	redirectionPause = 40 * time.Millisecond
)

// IsElsewhere reports whether a command certainly did nothing, and another node may accept it.
func IsElsewhere(err error) bool {
	var failed *net.OpError
	return redis.HasErrorPrefix(err, "MOVED") || errors.As(err, &failed) && failed.Op == "dial"
}

// awaitReplicas waits for all replicas that could replace the connection's master: those that are
// connected, were connected in the last ten minutes, or are listed by the cluster or the sentinels.
// A server that is no longer a master loses what it wrote.
func (s *Store) awaitReplicas(ctx context.Context, conn *redis.Conn, m *master, wait time.Duration) replication {
	if wait = m.patience(wait); wait == 0 {
		return unsafeWrite
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replicaWait+100*time.Millisecond)
	defer cancel()
	connected, err := connectedReplicas(ctx, conn)
	if err != nil {
		return unsafeWrite
	}
	p := replication{replicas: max(s.MinReplicas, m.maxReplicas(connected), s.listedReplicas(ctx, conn, m))}
	if p.replicas > 0 {
		began := m.now()
		p.confirmed = int(conn.Wait(ctx, p.replicas, wait).Val())
		m.noteReplicas(p.survivesFailover(), wait, m.now().Sub(began))
	}
	return p
}

// AwaitsReplicas reports whether the replicas of a cart's master have not confirmed a write in
// time, and are not to be asked again yet.
func (s *Store) AwaitsReplicas(ctx context.Context, ref Ref) bool {
	at, err := s.masterOf(ctx, ref.CartKey())
	if err != nil {
		return false
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	return at.slowReplicas && at.now().Before(at.probeAt)
}

// connectedReplicas returns how many replicas a master has now; 0 for a server that refuses ROLE.
func connectedReplicas(ctx context.Context, conn *redis.Conn) (int, error) {
	role := redis.NewSliceCmd(ctx, "role")
	err := conn.Process(ctx, role)
	if _, refused := errors.AsType[redis.Error](err); refused {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(role.Val()) < 3 || role.Val()[0] != "master" {
		return 0, errors.New("redisstore: the server is not a master")
	}
	replicas, _ := role.Val()[2].([]any)
	return len(replicas), nil
}

// listedReplicas returns how many replicas of a master the sentinels or the cluster list.
func (s *Store) listedReplicas(ctx context.Context, conn *redis.Conn, m *master) int {
	switch {
	case s.Sentinels != nil:
		return m.listedReplicas(func() (int, error) {
			ctx, cancel := context.WithTimeout(ctx, listingWait)
			defer cancel()
			return s.Sentinels(ctx, ReplicasRemembered)
		})
	case s.clustered():
		return m.listedReplicas(func() (int, error) {
			nodes := redis.NewStringCmd(ctx, "cluster", "nodes")
			if err := conn.Process(ctx, nodes); err != nil {
				return 0, err
			}
			return ReplicasOfMyself(nodes.Val(), m.now()), nil
		})
	}
	return 0
}

func (s *Store) clustered() bool {
	_, is := s.Client.(*redis.ClusterClient)
	return is
}

// ReplicasOfMyself counts the replicas of the node that printed CLUSTER NODES. If it has none, it
// may have replaced a failed master without slots, which then returns as its replica: these are
// counted. Nodes that have not answered for ten minutes do not count. The format of a line is
//
//	<id> <address> <flags> <master's id> <ping sent, ms> <pong received, ms> <epoch> <link> <slots> …
func ReplicasOfMyself(nodes string, now time.Time) int {
	var myself string
	replicas, replaced := map[string]int{}, 0 // replicas by their master
	for line := range strings.Lines(nodes) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		flags := strings.Split(f[2], ",")
		if slices.Contains(flags, "myself") {
			myself = f[0]
		}
		silentSince, _ := strconv.ParseInt(f[4], 10, 64) // 0 when no ping is unanswered
		switch {
		case silentSince > 0 && now.Sub(time.UnixMilli(silentSince)) > ReplicasRemembered:
		case slices.Contains(flags, "slave"):
			replicas[f[3]]++
		case slices.Contains(flags, "fail") && len(f) == 8:
			replaced++
		}
	}
	if n := replicas[myself]; n > 0 {
		return n
	}
	return replaced
}
