package cart

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// replicaWait bounds how long a write waits for its replicas. While they do not
// answer, writes wait no longer than laggardWait, so that a replica that hangs does
// not keep every connection of its master.
const (
	replicaWait = 500 * time.Millisecond
	laggardWait = 10 * time.Millisecond
	laggardFor  = time.Second
)

// laggards are the masters whose replicas lately did not confirm in time, by address.
type laggards struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// patience is how long a write to this master waits for its replicas now.
func (l *laggards) patience(master string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.until[master]) {
		return laggardWait
	}
	return replicaWait
}

func (l *laggards) note(master string, lags bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lags {
		l.until[master] = time.Now().Add(laggardFor)
	} else {
		delete(l.until, master)
	}
}

// replication is how far a write has got.
type replication struct {
	replicas  int64 // that the master knows of
	confirmed int64 // of them, in time
}

// safe reports whether a failover to any replica would keep the write. Without a
// replica there is none to lose it to.
func (p replication) safe() bool { return p.confirmed >= p.replicas }

// runReplicated runs a script and waits until every replica of its master has what
// it wrote. WAIT speaks only of the connection that it is sent on, and of that
// one's last write, so all of it goes over one connection to the master.
//
// A slot that is just moving to another node is written there without a wait, and
// counts as not confirmed.
func (s script) runReplicated(ctx context.Context, rdb redis.UniversalClient, l *laggards, how sending, keys []string, args ...any) (*redis.Cmd, replication) {
	var cmd *redis.Cmd
	for try := 0; ; try++ {
		master, err := masterOf(ctx, rdb, keys[0])
		if err != nil {
			cmd = redis.NewCmd(ctx)
			cmd.SetErr(err)
			return cmd, replication{}
		}
		conn := master.Conn()
		cmd = s.run(ctx, conn, how, keys, args...)
		if redis.HasErrorPrefix(cmd.Err(), "ASK") {
			_ = conn.Close()
			return s.run(ctx, rdb, how, keys, args...), replication{replicas: 1}
		}
		if try == redirections || !nothingRan(cmd.Err()) {
			var p replication
			if cmd.Err() == nil {
				p = awaitReplicas(ctx, conn, l, master.Options().Addr)
			}
			_ = conn.Close()
			return cmd, p
		}
		_ = conn.Close()
		if cluster, ok := rdb.(*redis.ClusterClient); ok {
			cluster.ReloadState(ctx) // only begins it, and at most every 200 ms
		}
		select {
		case <-time.After(redirectionPause):
		case <-ctx.Done():
		}
	}
}

// A moved slot, or a master that went away, is looked for again so often and at
// this pace, unless the request's time ends before. A node that was asked for the
// new layout may itself not have heard of it yet.
const (
	redirections     = 25
	redirectionPause = 40 * time.Millisecond
)

// nothingRan reports whether a failed command certainly did nothing, so that it may
// be sent elsewhere.
func nothingRan(err error) bool {
	var failed *net.OpError
	return redis.HasErrorPrefix(err, "MOVED") || errors.As(err, &failed) && failed.Op == "dial"
}

func masterOf(ctx context.Context, rdb redis.UniversalClient, key string) (*redis.Client, error) {
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return rdb.(*redis.Client), nil
}

// awaitReplicas waits for all replicas of a connection's master. A server that
// refuses to tell its role has none to wait for, as far as anybody knows; one that
// does not answer may have.
func awaitReplicas(ctx context.Context, conn *redis.Conn, l *laggards, master string) replication {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replicaWait+100*time.Millisecond)
	defer cancel()
	role := redis.NewSliceCmd(ctx, "role")
	var refused redis.Error
	switch err := conn.Process(ctx, role); {
	case errors.As(err, &refused), err == nil && len(role.Val()) < 3:
		return replication{}
	case err != nil:
		return replication{replicas: 1}
	}
	replicas, _ := role.Val()[2].([]any)
	p := replication{replicas: int64(len(replicas))}
	if p.replicas > 0 {
		p.confirmed = conn.Wait(ctx, len(replicas), l.patience(master)).Val()
		l.note(master, !p.safe())
	}
	return p
}

// durability is what a client is told of an applied change.
func (p replication) durability() string {
	if p.replicas > 0 && p.safe() {
		return "confirmed"
	}
	return "unconfirmed"
}
