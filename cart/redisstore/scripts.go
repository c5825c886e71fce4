package redisstore

import (
	"context"
	"crypto/rand"
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

// scripts are all scripts that write carts. Each is atomic in one slot.
type scripts struct {
	renew, add, set, edit, remove, clear, coupon, judge script
	intend, claim, apply, finish, forget                script
}

func newScripts() scripts {
	change := func(rule ...string) script {
		return newScript(append([]string{"cart", "stamps", "keys", "change"}, rule...)...)
	}
	return scripts{
		renew:  newScript("cart", "renew"),
		add:    change("bounds", "room", "add"),
		set:    change("bounds", "set"),
		edit:   change("bounds", "room", "edit"),
		remove: change("remove"),
		clear:  change("clear"),
		coupon: change("coupon"),
		judge:  change("judge"),
		intend: newScript("cart", "room", "intend"),
		claim:  newScript("cart", "stamps", "claim"),
		apply:  newScript("cart", "stamps", "keys", "apply"),
		finish: newScript("cart", "finish"),
		forget: newScript("cart", "forget"),
	}
}

// ScriptNames lists the names of all scripts. The commands that run them have these names as
// their FullName.
func ScriptNames() []string {
	all := newScripts()
	return []string{
		all.renew.name, all.add.name, all.set.name, all.edit.name, all.remove.name, all.clear.name, all.coupon.name,
		all.judge.name, all.intend.name, all.claim.name, all.apply.name, all.finish.name, all.forget.name,
	}
}

// script is a Lua script and its SHA-1 digest for EVALSHA.
type script struct {
	name, source, sha string
}

// newScript concatenates files of lua/. The last one gives the script its name.
func newScript(files ...string) script {
	parts := make([]string, len(files))
	for i, file := range files {
		part, _ := lua.ReadFile("lua/" + file + ".lua") // the files are embedded, and tests load all of them
		parts[i] = string(part)
	}
	return scriptOf(files[len(files)-1], strings.Join(parts, "\n"))
}

func scriptOf(name, source string) script {
	sum := sha1.Sum([]byte(source))
	return script{name: name, source: source, sha: hex.EncodeToString(sum[:])}
}

// sending says whether a script may be sent to Redis more than once per call.
type sending bool

const (
	// repeatable scripts change nothing the second time: the client may send them
	// again when a reply is lost.
	repeatable sending = true
	// once is for scripts that would count twice.
	once sending = false
)

// processor is a Redis client of any kind, or one connection of it.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// run sends the script with EVALSHA, and with EVAL if Redis does not have it yet.
func (s script) run(ctx context.Context, rdb processor, how sending, keys []string, args ...any) *redis.Cmd {
	cmd := s.send(ctx, rdb, how, "evalsha", s.sha, keys, args)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = s.send(ctx, rdb, how, "eval", s.source, keys, args)
	}
	return cmd
}

// send sends one command. go-redis follows redirections of any command. But if a dial
// fails, as it does while a cluster replaces a master, go-redis gives up on a command that
// opted out of retries. Nothing ran then, so send tries again.
func (s script) send(ctx context.Context, rdb processor, how sending, verb, body string, keys []string, args []any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, verb, body, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := &command{Cmd: redis.NewCmd(ctx, append(all, args...)...), script: s.name, how: how}
	cmd.SetFirstKeyPos(3)
	if how == repeatable {
		_ = rdb.Process(ctx, cmd)
		return cmd.Cmd
	}
	for range dials {
		cmd.SetErr(nil)
		if !failedDial(rdb.Process(ctx, cmd)) {
			break
		}
	}
	// A cluster reads the arguments to find the node, long before it writes them. Without a
	// connection it never did.
	if err := cmd.Err(); err != nil && (!cmd.written || failedDial(err) || errors.Is(err, redis.ErrPoolTimeout)) {
		cmd.SetErr(fmt.Errorf("%w: %w", errNotSent, err))
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

// errNotSent means that a command failed before any of it was written.
var errNotSent = errors.New("not sent")

// command runs a script.
type command struct {
	*redis.Cmd
	script  string
	how     sending
	written bool
}

// mark is the mark of the version that a script makes: six random characters. It is drawn
// whenever go-redis writes the command, so that a command that runs twice, on a master and on
// its successor, does not give the same mark to two histories. It does not come from Lua, whose
// random numbers begin alike on every server.
type mark struct{}

// MarshalBinary returns what go-redis writes.
func (mark) MarshalBinary() ([]byte, error) { return []byte(rand.Text()[:6]), nil }

// FullName is the script's name, for hooks.
func (c *command) FullName() string { return c.script }

// NoRetry is go-redis' way to opt out of its retries.
func (c *command) NoRetry() bool { return c.how == once }

// Args returns what go-redis writes, and records that it was about to. If go-redis or a hook
// calls it earlier for another reason, the outcome of a failed command only looks less certain
// than it is.
func (c *command) Args() []any {
	c.written = true
	return c.Cmd.Args()
}
