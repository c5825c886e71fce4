package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// A request runs in its own goroutine, and stops in a go-redis hook before each command
// or pipeline. Only one request runs at a time, from one command to the next, so the
// scheduler's choices determine everything.

type requestKey struct{}

type memoryKey struct{}

type stepHook struct{}

func (stepHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (stepHook) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return stop(ctx, []redis.Cmder{cmd})
	}
}

func (stepHook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return stop(ctx, cmds)
	}
}

func stop(ctx context.Context, cmds []redis.Cmder) error {
	memory := ctx.Value(memoryKey{}).(*memory)
	run := func() error { return memory.run(cmds) }
	if a, is := ctx.Value(requestKey{}).(*request); is {
		return a.step(ctx, cmds, run)
	}
	return run() // of the scheduler itself
}

type pending struct {
	cmds []redis.Cmder
	send func() error
	ctx  context.Context
	at   time.Duration // world.passed at that time
}

// expired reports whether the request's deadline is over when world.passed is passed.
func (p *pending) expired(passed time.Duration) bool {
	at, bounded := p.ctx.Deadline()
	return bounded && time.Until(at) < passed-p.at
}

// repeats reports whether go-redis sends the commands again when a reply is lost.
func (p *pending) repeats() bool {
	for _, cmd := range p.cmds {
		if once, ok := cmd.(interface{ NoRetry() bool }); ok && once.NoRetry() {
			return false
		}
	}
	return !p.asksMaster()
}

func (p *pending) asksMaster() bool { return p.named("role") || p.named("wait") }

func (p *pending) named(name string) bool { return p.cmds[0].Name() == name }

func (p *pending) mixed() bool {
	isNot := func(cmd redis.Cmder) bool { return !aboutGuest(cmd) }
	return slices.ContainsFunc(p.cmds, aboutGuest) && slices.ContainsFunc(p.cmds, isNot)
}

func (p *pending) asksGuest() bool {
	return slices.ContainsFunc(p.cmds, func(cmd redis.Cmder) bool { return cmd.Name() == "hgetall" && aboutGuest(cmd) })
}

func aboutGuest(cmd redis.Cmder) bool {
	key := keyOf(cmd)
	return key != "" && shardOf(key) == guestShard
}

func keyOf(cmd redis.Cmder) string {
	for _, arg := range cmd.Args() {
		if key, ok := arg.(string); ok && isCartKey(key) {
			return key
		}
	}
	return ""
}

// step waits for the scheduler's decision on the commands, and acts on it.
func (a *request) step(ctx context.Context, cmds []redis.Cmder, send func() error) error {
	if a.dead {
		return fail(cmds, errProcessDied)
	}
	for {
		a.at = &pending{cmds, send, ctx, a.schedule.passed}
		a.schedule.stopped <- a
		d := <-a.decide
		err, again := a.carryOut(d)
		if !again {
			return err
		}
	}
}

func (a *request) carryOut(d decision) (err error, again bool) {
	p := a.at
	if p.asksGuest() && d != goesOn && d != sendsTwice {
		a.unasked = true
	}
	switch d {
	case diesBefore:
		a.dead = true
		return fail(p.cmds, errProcessDied), false
	case diesAfter:
		_ = a.perform(p)
		a.dead = true
		return fail(p.cmds, errProcessDied), false
	case losesReply:
		_ = a.perform(p)
		return fail(p.cmds, errTimeout), false
	case losesGuest:
		return a.performHalf(p), false
	case sendsTwice:
		_ = a.perform(p)
		a.twice++
		return nil, true
	case arrivesLate:
		a.schedule.delay(a, p)
		return fail(p.cmds, errTimeout), false
	case unconfirmed:
		return a.askMaster(p.cmds[0], false), false
	case isLoading:
		return fail(p.cmds, errLoading), false
	case isMoving:
		return fail(p.cmds, errMoving), false
	}
	return a.perform(p), false
}

// perform runs the commands. It answers ROLE and WAIT itself, since the real Redis has no
// replica.
func (a *request) perform(p *pending) error {
	s := a.schedule
	if p.expired(s.passed) || a.overdue { // go-redis does not send it
		a.unasked = a.unasked || p.asksGuest()
		return fail(p.cmds, context.DeadlineExceeded)
	}
	if p.asksMaster() {
		return a.askMaster(p.cmds[0], !s.shards[a.shard].lags)
	}
	if claims(p.cmds[0]) {
		s.tried["merges"]++
	}
	for _, cmd := range p.cmds {
		if key := keyOf(cmd); key != "" {
			a.shard = shardOf(key)
			a.failovers = s.shards[a.shard].failovers
		}
	}
	err := p.send()
	s.advance(time.Millisecond)
	if slices.ContainsFunc(p.cmds, aboutGuest) {
		for _, cmd := range p.cmds {
			if clock, ok := cmd.(*redis.TimeCmd); ok {
				clock.SetVal(clock.Val().Add(s.plan.setting.ahead))
			}
		}
	}
	return err
}

// performHalf runs the commands of a pipeline, except those about a guest: they time out.
func (a *request) performHalf(p *pending) error {
	for _, cmd := range p.cmds {
		if aboutGuest(cmd) {
			cmd.SetErr(errTimeout)
			continue
		}
		_ = a.schedule.memory.do(cmd)
	}
	return errTimeout
}

// askMaster answers ROLE and WAIT for the shard of the request's last command. After a
// failover of that shard, the connection is broken.
func (a *request) askMaster(cmd redis.Cmder, confirmed bool) error {
	r := &a.schedule.shards[a.shard]
	if r.failovers != a.failovers {
		return fail([]redis.Cmder{cmd}, errBroken)
	}
	replicas := []any{}
	if r.listed {
		replicas = append(replicas, []any{"10.0.0.2", "6379", "1"})
	}
	switch cmd := cmd.(type) {
	case *redis.SliceCmd:
		cmd.SetVal([]any{"master", int64(1), replicas})
	case *redis.IntCmd:
		cmd.SetVal(map[bool]int64{true: 1}[confirmed])
	}
	return nil
}

var (
	errTimeout     = &net.OpError{Op: "read", Net: "tcp", Err: ioTimeout{}}
	errBroken      = &net.OpError{Op: "read", Net: "tcp", Err: fmt.Errorf("connection reset by peer")}
	errProcessDied = context.Canceled
	errLoading     = refusal("LOADING Redis is loading the dataset in memory")
	errMoving      = refusal("TRYAGAIN Multiple keys request during rehashing of slot")
)

// refusal is an error that Redis replies.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

type ioTimeout struct{}

func (ioTimeout) Error() string   { return "i/o timeout" }
func (ioTimeout) Timeout() bool   { return true }
func (ioTimeout) Temporary() bool { return true }

func fail(cmds []redis.Cmder, err error) error {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// delayed are commands that reach Redis after their sender has timed out.
type delayed struct {
	of   *request
	cmds []redis.Cmder
}

func (s *schedule) delay(a *request, p *pending) {
	d := delayed{of: a}
	for _, cmd := range p.cmds {
		if slices.Contains([]string{"evalsha", "del", "unlink"}, cmd.Name()) { // a read that is late does nothing
			d.cmds = append(d.cmds, redis.NewCmd(s.ctx, append([]any(nil), cmd.Args()...)...))
		}
	}
	a.late++
	a.tails++
	s.delayed = append(s.delayed, d)
}

func (s *schedule) deliver(i int) {
	d := s.delayed[i]
	s.delayed = append(s.delayed[:i:i], s.delayed[i+1:]...)
	_ = s.memory.run(d.cmds)
	d.of.tails--
	d.of.arrivedAt = s.passed
	s.note(d.of.String(), "arrives now", nil, d.cmds)
}
