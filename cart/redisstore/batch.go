package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/cause"
	"commerce/auth/script"
	"commerce/auth/timing"
)

// batcher sends the commands of one kind to one master. While several callers have some at the same
// time, these share one round trip: with 64 callers, a read then takes Redis a quarter of the CPU time
// (see docs/performance.md). A caller waits no longer than its own context allows, which
// go-redis's AutoPipeline would ignore. Reads and changes have batches of their own: go-redis
// repeats a batch of reads if its connection breaks. The zero value is ready to use.
type batcher struct {
	inFlight atomic.Int64

	mu      sync.Mutex
	waiting []*share
	sending int // goroutines that send batches until nothing waits
	slow    int // how many of these send a batch that is slow
}

const (
	// A batch has at most maxBatch shares, and maxBatchBytes of arguments or one share. A larger
	// batch of large carts may take longer than all its callers can wait, and much memory of Redis.
	maxBatch      = 64
	maxBatchBytes = 128 << 10

	// After slowBatch, commands no longer wait for the batch under way: its connection may
	// hang while others work. At most maxSending batches are under way.
	slowBatch  = 10 * time.Millisecond
	maxSending = 4
)

type reading struct {
	alone bool // share no round trip
	guard bool // make sure that a master answers (see exec)
}

// share is what one caller sends in a batch.
type share struct {
	ctx    context.Context
	client *redis.Client
	guard  bool // see exec
	cmds   []redis.Cmder
	bytes  int           // of the arguments
	sent   bool          // whether cmds were sent; only after done
	done   chan struct{} // closed when cmds have their results

	// For what waits for replicas, otherwise nil: copied has what confirm has returned for the batch.
	confirm func(context.Context, *redis.Conn) replication
	copied  chan replication
}

// send runs commands that only read, and returns the first failure. After an error of ctx, the
// commands must not be used: Redis may still be answering them.
func (b *batcher) send(ctx context.Context, client *redis.Client, how reading, cmds ...redis.Cmder) error {
	began := time.Now()
	concurrent := b.inFlight.Add(1)
	defer b.inFlight.Add(-1)
	if how.alone || concurrent == 1 {
		exec(ctx, client, how.guard, cmds)
		return firstFailure(cmds)
	}
	ctx, end := timing.Call(ctx, "redis", "redis shared read") // the batch itself belongs to no request
	mine := &share{ctx: ctx, client: client, guard: how.guard, cmds: cmds, done: make(chan struct{})}
	b.add(mine)
	sent := false
	select {
	case <-mine.done:
		sent = mine.sent // false if ctx ended before
	case <-ctx.Done():
	}
	var err error
	if sent {
		err = firstFailure(cmds)
	} else {
		err = cause.Of(ServerOf(client), began, ctx.Err())
	}
	end(err)
	return err
}

// isNotHere reports whether a Redis that works has refused a script that it or another node runs if
// it is sent by itself.
func isNotHere(err error) bool {
	return slices.ContainsFunc([]string{"NOSCRIPT", "MOVED", "ASK", "TRYAGAIN"}, func(prefix string) bool {
		return redis.HasErrorPrefix(err, prefix)
	})
}

// runShared runs a script once, as run does, but in a batch while others run on the same master. What was not sent there, or
// not to the right place, then runs by itself.
func (s *Store) runShared(
	ctx context.Context, at located, c script.Script, wait time.Duration, keys []string, args ...any,
) (*redis.Cmd, replication) {
	concurrent := at.changes.inFlight.Add(1)
	defer at.changes.inFlight.Add(-1)
	if s.alone || concurrent == 1 {
		return s.run(ctx, at, c, wait, keys, args...)
	}
	began := time.Now()
	shared, end := timing.Call(ctx, "redis", "redis shared change")
	cmd := c.Shared(shared, keys, args...)
	mine := s.shareOf(shared, at, cmd, wait, args)
	at.changes.add(mine)
	err := cause.Of(ServerOf(at.client), began, mine.await(cmd))
	end(err)
	copies := replication{replied: s.clock()}
	unrun := cmd.Withdraw() || script.Unsent(err) || !mayHaveRun(err)
	if unrun && (!cmd.Answered() || isNotHere(err)) && script.TimeLeft(ctx) {
		return s.run(ctx, at, c, wait, keys, args...)
	}
	if err == nil {
		if mine.copied != nil {
			made := mine.awaitCopies()
			copies.replicas, copies.confirmed = made.replicas, made.confirmed
		}
		return cmd.Cmd, copies
	}
	if unrun {
		err = fmt.Errorf("%w: %w", script.ErrNotSent, err)
	}
	failed := redis.NewCmd(ctx)
	failed.SetErr(err)
	return failed, copies
}

func (s *Store) shareOf(ctx context.Context, at located, cmd *script.Shared, wait time.Duration, args []any) *share {
	mine := &share{ctx: ctx, client: at.client, cmds: []redis.Cmder{cmd}, done: make(chan struct{})}
	for _, arg := range args {
		text, _ := arg.(string)
		mine.bytes += len(text)
	}
	if wait > 0 {
		mine.copied = make(chan replication, 1)
		mine.confirm = func(ctx context.Context, conn *redis.Conn) replication {
			return s.awaitReplicas(ctx, conn, at.master, wait)
		}
	}
	return mine
}

// await waits for the reply, or until the caller's time is over, and returns why there is none.
func (mine *share) await(cmd *script.Shared) error {
	select {
	case <-mine.done:
		if !cmd.Answered() {
			return cmp.Or(cmd.Err(), mine.ctx.Err(), script.ErrNotSent)
		}
	case <-mine.ctx.Done():
		if !cmd.Answered() {
			return mine.ctx.Err()
		}
	}
	return cmd.Err()
}

// awaitCopies waits for what confirm returns, but not for the batch: what other callers sent may still
// be running when the time of this one is over.
func (mine *share) awaitCopies() replication {
	select {
	case <-mine.done:
		return <-mine.copied
	default:
		return unsafeWrite
	}
}

func (b *batcher) add(mine *share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, mine)
	b.start()
}

// sendAll sends batches until nothing waits: each is what arrives during a round trip.
func (b *batcher) sendAll() {
	for {
		runtime.Gosched() // lets other callers join this batch
		batch := b.next()
		if batch == nil {
			return
		}
		slow := time.AfterFunc(slowBatch, func() { b.noteSlow(1) })
		sendBatch(batch)
		if !slow.Stop() {
			b.noteSlow(-1)
		}
	}
}

// noteSlow notes that a batch has become slow, or that a slow one has ended. What waits for it is sent, if no later caller
// does that.
func (b *batcher) noteSlow(change int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.slow += change; len(b.waiting) > 0 {
		b.start()
	}
}

// start begins to send, if all batches under way are slow: any other one takes what waits, or becomes slow and starts again.
func (b *batcher) start() {
	if b.sending == b.slow && b.sending < maxSending {
		b.sending++
		go b.sendAll()
	}
}

// next takes the next batch. If it is nil, the caller must end.
func (b *batcher) next() []*share {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, bytes := 0, 0
	for ; n < min(len(b.waiting), maxBatch); n++ {
		if bytes += b.waiting[n].bytes; n > 0 && bytes > maxBatchBytes {
			break
		}
	}
	if n == 0 {
		b.sending--
		return nil
	}
	batch := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	return batch
}

// sendBatch sends what the callers that are still waiting share, and wakes all callers.
func sendBatch(batch []*share) {
	cmds := make([]redis.Cmder, 0, 2*len(batch))
	var last time.Time
	for _, each := range batch {
		if each.ctx.Err() != nil {
			continue
		}
		each.sent = true
		cmds = append(cmds, each.cmds...)
		deadline, bounded := each.ctx.Deadline()
		if !bounded {
			deadline = time.Now().Add(time.Second)
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), last)
	defer cancel()
	latest := batch[len(batch)-1] // all clients of a master are alike, and this one is open
	var conn *redis.Conn
	switch {
	case len(cmds) == 0:
	case slices.ContainsFunc(batch, func(each *share) bool { return each.confirm != nil }):
		conn = latest.client.Conn()
		exec(ctx, conn, false, cmds)
	default:
		exec(ctx, latest.client, latest.guard, cmds)
	}
	for _, each := range batch {
		close(each.done)
	}
	if waiting := slices.DeleteFunc(batch, func(each *share) bool { return each.confirm == nil }); conn != nil {
		go confirmBatch(waiting, conn)
	} else {
		for _, each := range waiting {
			each.copied <- unsafeWrite
		}
	}
}

// confirmBatch waits once for those changes of a batch that wait for replicas: a WAIT covers every write of its connection.
func confirmBatch(waiting []*share, conn *redis.Conn) {
	copies := waiting[0].confirm(context.Background(), conn)
	_ = conn.Close()
	for _, each := range waiting {
		each.copied <- copies
	}
}

type pipeliner interface {
	script.Processor
	Pipeline() redis.Pipeliner
}

// exec runs commands in one round trip. Each has its own error afterwards.
//
// guard makes them fail with READONLY on a server that is no longer a master: a connection
// to it may stay open behind a fixed address, and HGETALL alone would show old carts. So a
// command that writes comes first. It changes nothing, because its key never exists. On a
// cluster, such a server redirects reads by itself.
func exec(ctx context.Context, client pipeliner, guard bool, cmds []redis.Cmder) {
	// A Shared learns of its reply when a pipeline has read it. Process may return much later, because
	// it replaces the connection of a Redis that is loading or read-only first.
	if _, shared := cmds[0].(*script.Shared); len(cmds) == 1 && !guard && !shared {
		_ = client.Process(ctx, cmds[0])
		return
	}
	pipe := client.Pipeline()
	var master *redis.BoolCmd
	if guard {
		master = pipe.PExpire(ctx, neverExists, time.Second)
	}
	_ = pipe.BatchProcess(ctx, cmds...)
	sent, err := pipe.Exec(ctx)
	demoted := guard && redis.HasErrorPrefix(master.Err(), "READONLY")
	// When Redis refuses a new connection, go-redis returns that without setting it.
	unset := err != nil && !slices.ContainsFunc(sent, func(cmd redis.Cmder) bool { return cmd.Err() != nil })
	if demoted || unset {
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
	}
}

// firstFailure returns the first error of cmds, also one that is a raw reply. A missing value is
// not an error.
func firstFailure(cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		err := cmd.Err()
		if raw, ok := cmd.(*redis.RawCmd); ok && err == nil {
			if reply := raw.Val(); len(reply) == 0 || reply[0] == '-' || reply[0] == '!' {
				err = fmt.Errorf("%w: %.100q", errReply, reply)
			}
		}
		if err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}
