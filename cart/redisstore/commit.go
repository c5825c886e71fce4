package redisstore

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/script"
	"commerce/cart"
	"commerce/cart/redisstore/layout"
)

//go:embed commit.lua
var commitLua string

// ScriptName is the FullName of the commands that run the script.
const ScriptName = "commit"

// commit is a decision on its way to Redis, as commit.lua has it. Its bytes never change: however many copies of it
// run, at most one is applied.
type commit struct {
	keys   []string // of one slot; the first has the fence
	time   int64    // of the decision, in ms by Redis' clock
	until  int64    // in the same way: from then on no copy runs any more
	fence  string   // the member n as it was read; "" for none
	mark   string   // that the commit appends to it
	checks []any
	writes []any
	by     string // appended to the instance's name, for turns of their own; "" for changes
	made   func() // for a step: called once the commit is known to be made; nil for nothing to do
}

// The member n, the fence, has the marks of the last decisions that have written the cart, the newest last, after
// firstMark if it has all of them. One would be safe; more tell the outcome of a decision whose reply is lost. Each is a
// character of the time and 30 random bits.
const (
	markSize  = 6
	maxMarks  = 10              // a hash with a value of more than 64 bytes takes three times the memory
	marksKept = 4 * time.Second // if there are not more
	markStep  = 250             // ms of a character of the time, which repeats after 16 seconds
	firstMark = "------"
)

const markTimes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// newMark returns the mark of a version, or the name of a claim.
func (s *Store) newMark() string {
	mark := make([]byte, markSize)
	_, _ = io.ReadFull(s.random, mark)
	for i := range mark {
		mark[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[mark[i]%32]
	}
	return string(mark)
}

func newFenceMark(rng io.Reader, now int64) string {
	var random [4]byte
	_, _ = io.ReadFull(rng, random[:])
	return markTimes[now/markStep%64:][:1] + base64.RawURLEncoding.EncodeToString(random[:])[:markSize-1]
}

// nextFence is the member n after the commit. It loses a mark once the next one is old. Until then, the mark
// tells a decision that expected it, and whose reply is lost, that it was not made.
func (c *commit) nextFence() string {
	kept := cmp.Or(c.fence, firstMark)
	kept = kept[max(0, len(kept)-(maxMarks-1)*markSize):]
	for len(kept) > markSize && c.isOld(kept[markSize]) {
		kept = kept[markSize:]
	}
	return kept + c.mark
}

// isOld reports whether a mark is older than marksKept, by its first character. That one repeats after 16 seconds, and is
// arbitrary in marks of earlier releases: an old mark may count as new, and is then kept longer.
func (c *commit) isOld(when byte) bool {
	age := (c.time/markStep - int64(strings.IndexByte(markTimes, when)) + 64) % 64
	return age*markStep > marksKept.Milliseconds() && age < 48 // of 64: a later one is of a server whose clock is ahead
}

// tolerance is how many ms the time of a decision may differ from Redis' clock, at first: a busy machine may need longer.
const tolerance = 20

// Tolerance is how much earlier than a change was made its time may be.
const Tolerance = tolerance * time.Millisecond

// wasMade reports whether the commit was applied to a cart with a fence.
func (c *commit) wasMade(fence string) bool { return hasMark(fence, c.mark) }

// wasNotMade reports whether the commit was certainly not applied yet to a cart with a fence: its mark would come right after
// the one that it expects, which is still there. Without a fence, there is no cart that has it.
func (c *commit) wasNotMade(fence string) bool {
	return fence == "" || !hasMark(fence, c.mark) && hasMark(fence, cmp.Or(c.expected(), firstMark))
}

// expects reports whether the commit may still be applied to a cart with a fence: since then, nobody has written it.
func (c *commit) expects(fence string) bool { return newestMark(fence) == c.expected() }

func (c *commit) expected() string { return newestMark(c.fence) }

// newestMark is the last mark of a fence; "" of none.
func newestMark(fence string) string { return fence[max(0, len(fence)-markSize):] }

func hasMark(fence, mark string) bool {
	for ; len(fence) >= markSize; fence = fence[markSize:] {
		if fence[:markSize] == mark {
			return true
		}
	}
	return false
}

func (c *commit) end() {
	if c.made != nil {
		c.made()
	}
}

// key returns the number of a key, which it adds if it is new.
func (c *commit) key(key string) int {
	for i := range c.keys {
		if c.keys[i] == key {
			return i + 1
		}
	}
	c.keys = append(c.keys, key)
	return len(c.keys)
}

// check makes the commit depend on a member of another hash than the cart; "" means that there is none.
func (c *commit) check(key, member, value string) {
	want := "-"
	if value != "" {
		want = "=" + value
	}
	c.checks = append(c.checks, c.key(key), member, want)
}

// maxArgs is how many arguments of one write Lua's unpack can pass, with room to spare.
const maxArgs = 4000

// write adds a command on one key. Its arguments are split into several commands of an even number, if there are too many.
func (c *commit) write(command, key string, args ...any) {
	for len(args) > 0 {
		n := c.key(key)
		some := args[:min(len(args), maxArgs)]
		c.writes = append(append(c.writes, command, n, len(some)), some...)
		args = args[len(some):]
	}
}

// delete adds the deletion of a key.
func (c *commit) delete(key string) { c.writes = append(c.writes, "DEL", c.key(key), 0) }

// change adds what changes members of a hash.
func (c *commit) change(key string, m layout.Members) {
	c.write("HDEL", key, m.Gone...)
	c.write("HSET", key, m.Set...)
}

// encode adds what makes the cart as it was read the cell after a decision, and returns how it is then stored, and for how long.
// now is the time of the decision, and ttl that of the cart.
func (c *commit) encode(before *layout.Hash, after cart.Cell, ttl time.Duration, now time.Time) (layout.Hash, time.Duration) {
	after, left, renewed := after.Expiring(ttl, now)
	members, hash := layout.Encode(before, after, c.nextFence())
	c.change(c.keys[0], members)
	if renewed {
		c.write("PEXPIRE", c.keys[0], left.Milliseconds())
	}
	return hash, left
}

// committed is a reply of commit.lua.
type committed struct {
	word  string // applied, late or changed
	now   int64
	wait  time.Duration // until another instance's turn is over
	cart  []string      // as it is; nil unless changed
	found []any         // by each check; nil for no member
}

// send sends one copy of a commit, in a round trip that others may share, and waits for replicas for a time. Without an
// error, copies tells which of them have it.
func (s *Store) send(ctx context.Context, at located, c *commit, turn, wait time.Duration) (committed, replication, error) {
	deadline, err := at.deadline(ctx)
	if err != nil {
		return committed{}, unsafeWrite, fmt.Errorf("%w: %w", script.ErrNotSent, err)
	}
	args := make([]any, 0, 6+len(c.checks)+len(c.writes))
	args = append(args, c.time-s.tolerance, min(deadline, c.until), c.expected(), s.name+c.by, turn.Milliseconds(), len(c.checks)/3)
	args = append(append(args, c.checks...), c.writes...)
	sent := s.clock()
	cmd, copies := s.runShared(ctx, at, s.script, wait, c.keys, args...)
	reply, err := cmd.Slice()
	if err != nil {
		return committed{}, copies, err
	}
	r := committed{word: reply[0].(string), now: reply[1].(int64)}
	switch {
	case r.word == "applied" && len(reply) > 2 && reply[2] != nil: // the error of the announcement
		s.PublishFailed()
	case r.word == "changed":
		r.wait = time.Duration(reply[2].(int64)) * time.Millisecond
		r.cart, r.found = texts(reply[3].([]any)), reply[4].([]any)
	}
	at.learn(r.now, sent, copies.replied)
	return r, copies, nil
}

// mayHaveRun reports whether a commit that failed with err may still have changed something. It has not if it was
// never sent, or if Redis refused it.
func mayHaveRun(err error) bool {
	reply, refused := errors.AsType[redis.Error](err)
	if !refused {
		return !errors.Is(err, script.ErrNotSent)
	}
	text := reply.Error() // the text of err does not have the position in the script
	if !strings.Contains(text, "user_script:") {
		return false
	}
	for _, said := range beforeAnyWrite {
		if strings.Contains(text, said) {
			return false
		}
	}
	return true
}

// beforeAnyWrite lists the errors that stop a script before its first write. Any other
// error inside a script, such as NOPERM, may come after a write.
var beforeAnyWrite = []string{"OOM ", "READONLY ", "NOREPLICAS ", "MISCONF ", "WRONGTYPE ", "LAYOUT "}
