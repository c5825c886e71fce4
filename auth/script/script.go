// Package script runs Lua scripts in Redis.
package script

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script. Its digest is the SHA-1 of its source in hex, for EVALSHA.
type Script struct{ Name, Source, Digest string }

// New returns a script. The commands that run it have the name as their FullName, for hooks.
func New(name, source string) Script {
	sum := sha1.Sum([]byte(source))
	return Script{name, source, hex.EncodeToString(sum[:])}
}

// Sending says whether a script may be sent to Redis more than once per call.
type Sending bool

const (
	// Repeatable scripts change nothing the second time: the client may send them
	// again when a reply is lost.
	Repeatable Sending = true
	// Once is for scripts that would count twice.
	Once Sending = false
)

// Processor is a Redis client of any kind, or one connection of it.
type Processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Run sends the script with EVALSHA, and with EVAL if Redis does not have it yet. The error of a
// script that runs once wraps ErrNotSent if it cannot have run.
func (s Script) Run(ctx context.Context, rdb Processor, how Sending, keys []string, args ...any) *redis.Cmd {
	cmd := s.send(ctx, rdb, how, "evalsha", s.Digest, keys, args)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = s.send(ctx, rdb, how, "eval", s.Source, keys, args)
	}
	return cmd
}

// send sends one command. go-redis follows redirections of any command. But if a dial
// fails, as it does while a cluster replaces a master, go-redis gives up on a command that
// opted out of retries. Nothing ran then, so send tries again.
func (s Script) send(ctx context.Context, rdb Processor, how Sending, verb, body string, keys []string, args []any) *redis.Cmd {
	cmd := &command{Cmd: newCmd(ctx, verb, body, keys, args), script: s.Name, how: how}
	for range dials {
		cmd.SetErr(nil)
		if err := rdb.Process(ctx, cmd); how == Repeatable || !failedDial(err) {
			break
		}
	}
	// A cluster reads the arguments to find the node, long before it writes them. Without a
	// connection it never did.
	err := cmd.Err()
	if how == Once && err != nil && (!cmd.written || Unsent(err)) {
		cmd.SetErr(fmt.Errorf("%w: %w", ErrNotSent, err))
	}
	return cmd.Cmd
}

func newCmd(ctx context.Context, verb, body string, keys []string, args []any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, verb, body, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

func failedDial(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

// Unsent reports whether err says that there was no connection to write to.
func Unsent(err error) bool { return failedDial(err) || errors.Is(err, redis.ErrPoolTimeout) }

// dials is how often a command that must run once tries to connect.
const dials = 3

// ErrNotSent means that a command failed before any of it was written.
var ErrNotSent = errors.New("not sent")

type command struct {
	*redis.Cmd
	script  string
	how     Sending
	written bool
}

// FullName is the script's name, for hooks.
func (c *command) FullName() string { return c.script }

// NoRetry is go-redis' way to opt out of its retries.
func (c *command) NoRetry() bool { return c.how == Once }

// Args returns what go-redis writes, and records that it was about to. If go-redis or a hook
// calls it earlier for another reason, the outcome of a failed command only looks less certain
// than it is.
func (c *command) Args() []any {
	c.written = true
	return c.Cmd.Args()
}

// Shared is a script that is sent in one pipeline with those of other callers. Because of it,
// go-redis never repeats the pipeline. A caller may leave before the pipeline has ended: only
// Answered and Withdraw may be called until then, and after Answered the result may be read.
type Shared struct {
	*redis.Cmd
	ctx      context.Context
	script   string
	state    atomic.Int32
	answered atomic.Bool
}

// The states of a Shared.
const (
	unwritten int32 = iota
	written
	withdrawn
)

// Shared returns the command that runs the script with EVALSHA in a pipeline.
func (s Script) Shared(ctx context.Context, keys []string, args ...any) *Shared {
	return &Shared{Cmd: newCmd(ctx, "evalsha", s.Digest, keys, args), ctx: ctx, script: s.Name}
}

// FullName is the script's name, for hooks.
func (c *Shared) FullName() string { return c.script }

// NoRetry is go-redis' way to opt out of its retries.
func (c *Shared) NoRetry() bool { return true }

// TimeLeft reports whether a command that is sent now can be answered before ctx ends. If not, sending
// it would only make its outcome unknown.
func TimeLeft(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() == nil && (!bounded || time.Until(deadline) > 5*time.Millisecond)
}

// Args returns what go-redis writes: after Withdraw, or when the caller's time is over, a PING, since
// other commands follow.
func (c *Shared) Args() []any {
	if !TimeLeft(c.ctx) {
		c.Withdraw()
	}
	if !c.state.CompareAndSwap(unwritten, written) && c.state.Load() == withdrawn {
		return []any{"ping"}
	}
	return c.Cmd.Args()
}

// Withdraw reports whether the script was not written to a connection; it then never will be.
func (c *Shared) Withdraw() bool {
	return c.state.CompareAndSwap(unwritten, withdrawn) || c.state.Load() == withdrawn
}

// Answered reports whether Redis has replied.
func (c *Shared) Answered() bool { return c.answered.Load() }

// SetErr sets the error, unless Redis has replied: when a later command of the pipeline fails, go-redis
// sets its error on all commands.
func (c *Shared) SetErr(err error) {
	if c.Answered() {
		return
	}
	c.Cmd.SetErr(err)
	_, refused := errors.AsType[redis.Error](err)
	if c.state.Load() == written && (refused || err == nil && c.Val() != nil) {
		c.answered.Store(true)
	}
}
