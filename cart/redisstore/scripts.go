package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var lua embed.FS

// scripts are everything that writes to a cart. Each is atomic in one slot.
type scripts struct {
	read, add, set, remove, clear, coupon, judge script
	intend, claim, apply, finish, forget         script
}

func newScripts() scripts {
	change := func(rule string) script { return newScript("cart", "stamps", "keys", "change", rule) }
	return scripts{
		read:   newScript("cart", "read"),
		add:    change("add"),
		set:    change("set"),
		remove: change("remove"),
		clear:  change("clear"),
		coupon: change("coupon"),
		judge:  change("judge"),
		intend: newScript("cart", "intend"),
		claim:  newScript("cart", "stamps", "claim"),
		apply:  newScript("cart", "stamps", "keys", "apply"),
		finish: newScript("cart", "finish"),
		forget: newScript("cart", "forget"),
	}
}

// script is a Lua script and the digest by which Redis remembers it.
type script struct {
	source, sha string
}

// newScript joins files of lua.
func newScript(files ...string) script {
	parts := make([]string, len(files))
	for i, file := range files {
		part, _ := lua.ReadFile("lua/" + file + ".lua") // a test loads all of them
		parts[i] = string(part)
	}
	source := strings.Join(parts, "\n")
	sum := sha1.Sum([]byte(source))
	return script{source: source, sha: hex.EncodeToString(sum[:])}
}

// sending says how often a script may reach Redis for one call.
type sending bool

const (
	// repeatable scripts do nothing the second time: the client may send them
	// again when an answer is lost.
	repeatable sending = true
	// once is for scripts that would count twice.
	once sending = false
)

// processor is a Redis client of any kind, or one connection of it.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// run sends the script by its digest, and whole where Redis does not have it yet.
func (s script) run(ctx context.Context, rdb processor, how sending, keys []string, args ...any) *redis.Cmd {
	cmd := s.send(ctx, rdb, how, "evalsha", s.sha, keys, args)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = s.send(ctx, rdb, how, "eval", s.source, keys, args)
	}
	return cmd
}

// send hands one command over. go-redis follows redirections of any command, but
// gives up on one that opted out of retries when a dial fails, as it does while a
// cluster replaces a master; nothing ran then, so it is tried again.
func (s script) send(ctx context.Context, rdb processor, how sending, verb, body string, keys []string, args []any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, verb, body, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	if how == repeatable {
		_ = rdb.Process(ctx, cmd)
		return cmd
	}
	one := &sentOnce{Cmd: cmd}
	for range dials {
		cmd.SetErr(nil)
		var failed *net.OpError
		if err := rdb.Process(ctx, one); !errors.As(err, &failed) || failed.Op != "dial" {
			break
		}
	}
	if err := cmd.Err(); err != nil && !one.written {
		cmd.SetErr(fmt.Errorf("%w: %w", errNotSent, err))
	}
	return cmd
}

// dials is how often a command that must run once tries to get a connection.
const dials = 3

// errNotSent says that a command failed before any of it was written.
var errNotSent = errors.New("redisstore: not sent")

// sentOnce is a command that go-redis must not send again on its own.
type sentOnce struct {
	*redis.Cmd
	written bool
}

// NoRetry is go-redis' way to opt out of its retries.
func (*sentOnce) NoRetry() bool { return true }

// Args is what go-redis writes. Anything else that asks for it earlier only makes the
// outcome of a failed command look less certain than it is.
func (c *sentOnce) Args() []any {
	c.written = true
	return c.Cmd.Args()
}
