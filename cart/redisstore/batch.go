package redisstore

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// reads sends the reads of one master. While several requests read at the same time, their
// commands share one connection and one round trip: with 64 callers, a read then takes
// Redis 2.4 µs instead of 10 (see docs/performance.md). A lone reader is sent directly.
//
// Only reads may share a batch: a lost connection fails everything in it. A caller waits
// no longer than its own context allows, even if Redis hangs and the batch takes longer.
//
// go-redis' AutoPipeline measured the same. But its batches do not end with their callers'
// contexts, so it would need a second client with other timeouts for each server.
//
// The zero value is ready to use.
type reads struct {
	inFlight atomic.Int64

	mu      sync.Mutex
	waiting []*read
	sending bool // a goroutine sends batches until none waits
}

// read is what one caller reads.
type read struct {
	ctx    context.Context
	client *redis.Client
	cmds   []redis.Cmder
	sent   bool          // whether cmds were sent; only after done
	done   chan struct{} // closed when cmds have their results
}

// errSkipped means that a read's context ended before it was sent.
var errSkipped = errors.New("redisstore: the read's time ended before it was sent")

// send runs commands that only read. batch says whether to share a round trip with other
// callers. It returns the first failure, including replies that are errors. After an error
// of ctx, the commands must not be used: Redis may still be answering them.
func (r *reads) send(ctx context.Context, client *redis.Client, batch bool, cmds ...redis.Cmder) error {
	concurrent := r.inFlight.Add(1)
	defer r.inFlight.Add(-1)
	if !batch || concurrent == 1 {
		exec(ctx, client, cmds)
		return firstFailure(cmds)
	}
	mine := &read{ctx: ctx, client: client, cmds: cmds, done: make(chan struct{})}
	r.add(mine)
	select {
	case <-mine.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !mine.sent {
		return errSkipped
	}
	return firstFailure(cmds)
}

func (r *reads) add(mine *read) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, mine)
	if !r.sending {
		r.sending = true
		go r.sendAll()
	}
}

// sendAll sends one batch after the other until none waits. The reads that arrive during
// one round trip make up the next batch.
func (r *reads) sendAll() {
	var batch []*read
	for {
		runtime.Gosched() // lets other callers join this batch
		r.mu.Lock()
		batch, r.waiting = r.waiting, batch[:0]
		r.sending = len(batch) > 0
		r.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		sendBatch(batch)
		clear(batch)
	}
}

// sendBatch sends the reads whose callers still wait, and wakes all callers.
func sendBatch(batch []*read) {
	var cmds []redis.Cmder
	var client *redis.Client
	var last time.Time
	for _, r := range batch {
		if r.ctx.Err() != nil {
			continue
		}
		r.sent = true
		client, cmds = r.client, append(cmds, r.cmds...) // all clients of a master are alike
		deadline, bounded := r.ctx.Deadline()
		if !bounded {
			deadline = time.Now().Add(maxBatch)
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	if len(cmds) > 0 {
		ctx, cancel := context.WithDeadline(context.Background(), last)
		exec(ctx, client, cmds)
		cancel()
	}
	for _, r := range batch {
		close(r.done)
	}
}

// maxBatch limits a batch with a caller who has no deadline.
const maxBatch = time.Second

// exec runs commands in one round trip. Each has its own error afterwards.
func exec(ctx context.Context, client redis.UniversalClient, cmds []redis.Cmder) {
	if len(cmds) == 1 {
		_ = client.Process(ctx, cmds[0])
		return
	}
	pipe := client.Pipeline()
	_ = pipe.BatchProcess(ctx, cmds...)
	_, err := pipe.Exec(ctx)
	if err == nil || slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
		return
	}
	// When Redis refuses a new connection, go-redis returns that without setting it.
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// firstFailure returns the first error of cmds. A missing value is not an error.
func firstFailure(cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		err := cmd.Err()
		if raw, ok := cmd.(*redis.RawCmd); ok && err == nil {
			err = refusal(raw)
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}
