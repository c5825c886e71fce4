// Package script runs Lua scripts in Redis.
package script

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"

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
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, verb, body, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := &command{Cmd: redis.NewCmd(ctx, append(all, args...)...), script: s.Name, how: how}
	cmd.SetFirstKeyPos(3)
	for range dials {
		cmd.SetErr(nil)
		if err := rdb.Process(ctx, cmd); how == Repeatable || !failedDial(err) {
			break
		}
	}
	// A cluster reads the arguments to find the node, long before it writes them. Without a
	// connection it never did.
	err := cmd.Err()
	if how == Once && err != nil && (!cmd.written || failedDial(err) || errors.Is(err, redis.ErrPoolTimeout)) {
		cmd.SetErr(fmt.Errorf("%w: %w", ErrNotSent, err))
	}
	return cmd.Cmd
}

// failedDial reports whether a command failed because no connection could be opened.
func failedDial(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

// dials is how often a command that must run once tries to connect.
const dials = 3

// ErrNotSent means that a command failed before any of it was written.
var ErrNotSent = errors.New("not sent")

// command runs a script.
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
