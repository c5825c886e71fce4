package redisstore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/cause"
	"commerce/auth/timing"
)

// reads sends the reads of one master. While several requests read at the same time, their
// commands share one round trip: with 64 callers, a read then takes Redis a fifth of the CPU time
// (see docs/performance.md). A caller waits no longer than its own context allows, which
// go-redis's AutoPipeline would ignore. Only reads may share a batch: a lost connection fails
// everything in it. The zero value is ready to use.
type reads struct {
	inFlight atomic.Int64

	mu      sync.Mutex
	waiting []*read
	sending int       // goroutines that send batches until no read waits
	began   time.Time // when the latest batch was sent
}

const (
	// maxBatch is how many reads share a round trip. A larger batch of large carts may take
	// longer than all its callers can wait, and much memory of Redis.
	maxBatch = 64

	// After slowBatch, reads no longer wait for the batch under way: its connection may
	// hang while others work. At most maxSending batches are under way.
	slowBatch  = 10 * time.Millisecond
	maxSending = 4
)

// reading is how a store reads.
type reading struct {
	batch bool // share round trips
	guard bool // make sure that a master answers (see exec)
}

// read is what one caller reads.
type read struct {
	ctx    context.Context
	client *redis.Client
	guard  bool // see exec
	cmds   []redis.Cmder
	sent   bool          // whether cmds were sent; only after done
	done   chan struct{} // closed when cmds have their results
}

// send runs commands that only read, and returns the first failure. After an error of ctx, the
// commands must not be used: Redis may still be answering them.
func (r *reads) send(ctx context.Context, client *redis.Client, how reading, cmds ...redis.Cmder) error {
	began := time.Now()
	concurrent := r.inFlight.Add(1)
	defer r.inFlight.Add(-1)
	if !how.batch || concurrent == 1 {
		exec(ctx, client, how.guard, cmds)
		return firstFailure(cmds)
	}
	ctx, end := timing.Call(ctx, "redis", "redis shared read") // the batch itself belongs to no request
	mine := &read{ctx: ctx, client: client, guard: how.guard, cmds: cmds, done: make(chan struct{})}
	r.add(mine)
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
		err = cause.Of(serverOf(client), began, ctx.Err())
	}
	end(err)
	return err
}

func (r *reads) add(mine *read) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, mine)
	if r.sending == 0 || r.sending < maxSending && time.Since(r.began) > slowBatch {
		r.sending++
		r.began = time.Now()
		go r.sendAll()
	}
}

// sendAll sends one batch after the other until no read waits. The reads that arrive
// during one round trip make up the next batch.
func (r *reads) sendAll() {
	for {
		runtime.Gosched() // lets other callers join this batch
		batch := r.next()
		if batch == nil {
			return
		}
		sendBatch(batch)
	}
}

// next takes the next batch. If it is nil, the caller must end.
func (r *reads) next() []*read {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), maxBatch)
	if n == 0 {
		r.sending--
		return nil
	}
	batch := slices.Clone(r.waiting[:n])
	r.waiting = slices.Delete(r.waiting, 0, n)
	r.began = time.Now()
	return batch
}

// sendBatch sends the reads whose callers are still waiting, and wakes all callers.
func sendBatch(batch []*read) {
	cmds := make([]redis.Cmder, 0, 2*len(batch))
	var last time.Time
	for _, r := range batch {
		if r.ctx.Err() != nil {
			continue
		}
		r.sent = true
		cmds = append(cmds, r.cmds...)
		deadline, bounded := r.ctx.Deadline()
		if !bounded {
			deadline = time.Now().Add(time.Second)
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	if len(cmds) > 0 {
		ctx, cancel := context.WithDeadline(context.Background(), last)
		latest := batch[len(batch)-1] // all clients of a master are alike, and this one is open
		exec(ctx, latest.client, latest.guard, cmds)
		cancel()
	}
	for _, r := range batch {
		close(r.done)
	}
}

// exec runs commands in one round trip. Each has its own error afterwards.
//
// guard makes them fail with READONLY on a server that is no longer a master: a connection
// to it may stay open behind a fixed address, and HGETALL alone would show old carts. So a
// command that writes comes first. It changes nothing, because its key never exists. On a
// cluster, such a server redirects reads by itself.
func exec(ctx context.Context, client redis.UniversalClient, guard bool, cmds []redis.Cmder) {
	if len(cmds) == 1 && !guard {
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
