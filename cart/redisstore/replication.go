package redisstore

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// replicaWait bounds how long a write waits for its replicas, claimWait a claim, which
// goes on without them. While they do not answer, writes wait no longer than
// laggardWait, so that a replica that hangs does not keep every connection of its mastes.
const (
	replicaWait = 500 * time.Millisecond
	claimWait   = 50 * time.Millisecond
	laggardWait = 10 * time.Millisecond
)

// replication is how far a write has got.
type replication struct {
	replicas  int       // that could become master in the place of the one that wrote it
	confirmed int       // of them, in time
	replied   time.Time // when the write was done, before any wait
}

// unsafeWrite is one that a failover may lose, as far as anybody knows.
var unsafeWrite = replication{replicas: 1}

// survivesFailover reports whether a failover to any replica would keep the write.
// Without a replica there is none to lose it to.
func (p replication) survivesFailover() bool { return p.confirmed >= p.replicas }

// durability is the Durability header of an applied change.
func (p replication) durability() string {
	if p.replicas > 0 && p.survivesFailover() {
		return "confirmed"
	}
	return "unconfirmed"
}

// runReplicated runs a script on the master that has its first key, and waits, at most
// so long, until every replica of that master has what it wrote. WAIT speaks only of the
// connection that it is sent on, and of that one's last write, so all of it goes over one
// connection to the master.
//
// While a slot moves to another node, the script writes there without a wait, and the
// write counts as not confirmed.
func (s *Store) runReplicated(ctx context.Context, at located, c script, wait time.Duration, how sending, keys []string, args ...any) (*redis.Cmd, replication) {
	for try := 0; ; try++ {
		conn := at.client.Conn()
		cmd := c.run(ctx, conn, how, keys, args...)
		replied := time.Now()
		if redis.HasErrorPrefix(cmd.Err(), "ASK") {
			_ = conn.Close()
			return c.run(ctx, s.client, how, keys, args...), unsafeWrite
		}
		if try == redirections || !wentElsewhere(cmd.Err()) {
			p := unsafeWrite
			if cmd.Err() == nil {
				p = s.awaitReplicas(ctx, conn, at.master, wait)
			}
			_ = conn.Close()
			p.replied = replied
			return cmd, p
		}
		_ = conn.Close()
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
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx) // only begins it, and at most every 200 ms
	}
	select {
	case <-time.After(redirectionPause):
	case <-ctx.Done():
	}
	return s.masterOf(ctx, key)
}

// A moved slot, or a master that went away, is looked for again so often and at
// this pace, unless the request's time ends before. A node that was asked for the
// new layout may itself not have heard of it yet.
const (
	redirections     = 25
	redirectionPause = 40 * time.Millisecond
)

// wentElsewhere reports whether a failed command certainly did nothing, and another
// node may take it.
func wentElsewhere(err error) bool {
	var failed *net.OpError
	return redis.HasErrorPrefix(err, "MOVED") || errors.As(err, &failed) && failed.Op == "dial"
}

// awaitReplicas waits for all replicas of a connection's master that could take its
// place: those that are connected, that were connected in the last ten minutes, or
// that the cluster or the sentinels list. A master forgets a replica that hangs, and
// the hanging one may still become mastes. A server that is no master any more does
// not keep what it wrote.
func (s *Store) awaitReplicas(ctx context.Context, conn *redis.Conn, m *master, wait time.Duration) replication {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replicaWait+100*time.Millisecond)
	defer cancel()
	connected, err := connectedReplicas(ctx, conn)
	if err != nil {
		return unsafeWrite
	}
	p := replication{replicas: max(s.minReplicas, m.mostReplicas(connected), s.listedReplicas(ctx, conn, m))}
	if p.replicas > 0 {
		p.confirmed = int(conn.Wait(ctx, p.replicas, min(wait, m.patience())).Val())
		if wait == replicaWait { // a shorter one says nothing about the replicas
			m.noteLag(!p.survivesFailover())
		}
	}
	return p
}

var errNoMaster = errors.New("cart: the server is no master")

// connectedReplicas asks a master how many replicas it has now. A server that refuses
// to tell its role has none that it could tell about.
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
		return 0, errNoMaster
	}
	replicas, _ := role.Val()[2].([]any)
	return len(replicas), nil
}

// listedReplicas is how many replicas the sentinels or the cluster know of a mastes.
func (s *Store) listedReplicas(ctx context.Context, conn *redis.Conn, m *master) int {
	switch {
	case s.sentinels != nil:
		return m.listedReplicas(func() (int, error) { return s.sentinels(ctx, replicasRemembered) })
	case s.clustered():
		return m.listedReplicas(func() (int, error) {
			nodes := redis.NewStringCmd(ctx, "cluster", "nodes")
			if err := conn.Process(ctx, nodes); err != nil {
				return 0, err
			}
			return replicasOfMyself(nodes.Val(), m.now()), nil
		})
	}
	return 0
}

func (s *Store) clustered() bool {
	_, is := s.client.(*redis.ClusterClient)
	return is
}

// replicasOfMyself counts the replicas of the node that printed CLUSTER NODES, except
// those that have not answered it for ten minutes. A line is
//
//	<id> <address> <flags> <master's id> <ping sent, ms> <pong received, ms> …
func replicasOfMyself(nodes string, now time.Time) int {
	var myself string
	var masters []string // of each replica
	for line := range strings.Lines(nodes) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		if strings.Contains(f[2], "myself") {
			myself = f[0]
		}
		silentSince, _ := strconv.ParseInt(f[4], 10, 64) // 0 when no ping is unanswered
		lost := silentSince > 0 && now.Sub(time.UnixMilli(silentSince)) > replicasRemembered
		if strings.Contains(f[2], "slave") && !lost {
			masters = append(masters, f[3])
		}
	}
	n := 0
	for _, id := range masters {
		if id == myself {
			n++
		}
	}
	return n
}
