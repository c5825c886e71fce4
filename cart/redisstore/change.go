package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/cause"
	"commerce/auth/problem"
	"commerce/auth/script"
	"commerce/cart"
	"commerce/cart/redisstore/rules"
)

// Change is one change of a cart: the name of a script, and its own arguments.
type Change struct {
	script string
	args   []any
	rule   func(cart.Cart) cart.Cart // nil: it changes nothing
}

// After returns what the rules make of a cart, without the room that merges reserve: the same cart if
// they refuse the change.
func (c Change) After(before cart.Cart) cart.Cart {
	if c.rule == nil {
		return before
	}
	return c.rule(before)
}

// Add adds to a line, and creates it if needed. See rules.Add.
func Add(l cart.NewLine, limits cart.Limits) Change {
	return Change{"add", append(
		boundArgs(string(l.ID), l.Bounds),
		l.Quantity, int64(l.Price), encodeFields(l.Fields), l.Notice, encodeMetadata(l.Metadata),
		limits.Lines, limits.CartText, limits.LineText,
	), func(c cart.Cart) cart.Cart {
		c, _ = rules.Add(c, l, limits)
		return c
	}}
}

// SetQuantity sets the quantity of a line; 0 removes it. See rules.SetQuantity.
func SetQuantity(item cart.LineID, quantity int64, b cart.Bounds, raise problem.Code) Change {
	return Change{"set", append(boundArgs(string(item), b), quantity, string(raise)), func(c cart.Cart) cart.Cart {
		c, _, _ = rules.SetQuantity(c, item, quantity, b, raise)
		return c
	}}
}

// Edit edits a line. See rules.Edit.
func Edit(item cart.LineID, e cart.EditedLine, limits cart.Limits) Change {
	var quantity any = ""
	if e.Quantity != nil {
		quantity = *e.Quantity
	}
	return Change{"edit", append(
		boundArgs(string(item), e.Bounds),
		quantity, string(e.Raise), string(e.From.ID), e.From.Notice,
		string(e.ID), int64(e.Price), e.Accepts, encodeFields(e.Fields), e.Notice, encodeMetadata(e.Metadata),
		limits.CartText, limits.LineText,
	), func(c cart.Cart) cart.Cart {
		c, _, _ = rules.Edit(c, item, e, limits)
		return c
	}}
}

// boundArgs are the first arguments of the scripts that judge quantities.
func boundArgs(item string, b cart.Bounds) []any {
	return append(make([]any, 0, 18), item, b.Stock, b.PerCart, b.Min, b.Max, b.Step)
}

// Remove removes a line. Removing a line that does not exist changes nothing.
func Remove(item cart.LineID) Change {
	return Change{"remove", []any{string(item)}, func(c cart.Cart) cart.Cart { return rules.Remove(c, item) }}
}

// Clear removes all lines, the coupon and the cart's metadata.
func Clear() Change { return Change{script: "clear", rule: rules.Clear} }

// SetCoupon sets the cart's coupon; "" removes it.
func SetCoupon(code string) Change {
	return Change{"coupon", []any{code}, func(c cart.Cart) cart.Cart { return rules.SetCoupon(c, code) }}
}

// SetMetadata changes the cart's metadata by name; "" removes a name. See cart.Metadata.
func SetMetadata(changes cart.Metadata, limits cart.Limits) Change {
	return Change{"metadata", []any{encodeMetadata(changes), limits.CartText}, func(c cart.Cart) cart.Cart {
		c, _ = rules.SetMetadata(c, changes, limits)
		return c
	}}
}

// NoteAgent is the last operation of an agent's list. It stores that the agent has seen the version that the
// list makes, or has canceled the cart.
func NoteAgent(cancels bool) Change {
	if cancels {
		return Change{script: "agent", args: []any{AgentCanceled}}
	}
	return Change{script: "agent", args: []any{""}}
}

// AgentCanceled is the Stored.Agent of a cart that its agent has canceled.
const AgentCanceled = "-"

// RefusedOp stands in a list for an operation that is refused with a code, whatever the cart holds.
func RefusedOp(code problem.Code) Change { return Change{script: "refused", args: []any{string(code)}} }

// RefusedEdit stands in a list for an edit that is refused because of its line as it was read; the zero
// Line if the cart did not have it. If the line is another one when its turn comes, the whole list is refused.
func RefusedEdit(code problem.Code, item cart.LineID, read *cart.Line) Change {
	return Change{script: "refused", args: []any{string(code), string(item), string(read.ID), read.Notice}}
}

// Ops makes a list of changes, in order, in one step: those that are not refused, if each is set, and
// else all of them or none. In a list, an item names only a line, never a product. A line that is not
// as an Edit or a RefusedEdit has read it refuses the whole list.
func Ops(each bool, list []Change) Change {
	mode, size := "all", 1
	if each {
		mode = "each"
	}
	for _, c := range list {
		size += 2 + len(c.args)
	}
	args := append(make([]any, 0, size), mode)
	for _, c := range list {
		args = append(append(args, c.script, len(c.args)), c.args...)
	}
	return Change{script: "ops", args: args}
}

// CheckOnly changes nothing. It runs the replay and If-Match checks, which take precedence over
// the refusal of a change that is refused anyway.
func CheckOnly() Change { return Change{script: "check"} }

// Conditions are the parts of a request that decide whether its change is made.
type Conditions struct {
	IfMatch     string // "" for none, "*", or " <id>.<version>.<mark> …" with spaces around each
	Key         string // digest of the idempotency key, "" for none
	Fingerprint string // digest of method, path and body; "" without a key
	Stamp       string // cart.StampSize characters of a digest, also of X-Timestamp; "" with a key, or without either
}

// Attempt is what the service adds to one attempt at a change.
type Attempt struct {
	CartID string        // for a cart that this change creates; "": it may not create one, which is RateLimited
	Ignore PendingMerges // merges that cannot be finished now: the change is made without them
}

type Outcome struct {
	Status  Status
	Refusal cart.Refusal // of Refused; its code may also be idempotency_conflict, version_mismatch, rate_limited
	Stored               // the cart after the change

	// ChangedLine is the line that an applied or replayed change has changed, if its request
	// names another; "" for none.
	ChangedLine cart.LineID

	// Ops has the outcome of each operation of an applied or replayed list; nil for a list that is
	// replayed by its stamp, which does not keep them. Op is the operation for which a list is
	// refused, from 0.
	Ops []OpOutcome
	Op  int

	// At is when a change that is replayed by its key was applied, in ms by Redis' clock.
	At int64

	Durability string // Confirmed or unconfirmed; "" when changes do not wait for replicas
}

type OpOutcome struct {
	Line    cart.LineID   // that it changed; "" for none
	Refusal *cart.Refusal // nil if it was not refused
}

type Status string

const (
	Applied    Status = "applied"
	Replayed   Status = "replayed"    // an earlier request applied it; nothing changed now
	MergeFirst Status = "merge_first" // a merge must be finished first; nothing changed
	Refused    Status = "refused"     // nothing changed

	late Status = "late"
)

// Change makes a change, atomically. It changes nothing after ctx's deadline, even if Redis
// runs the script later. A change without a key is sent only once, since a lost reply may
// hide a change that was made: that is problem.OutcomeUnknown. Other failures are
// problem.Unavailable.
func (s *Store) Change(ctx context.Context, ref Ref, on Conditions, with Attempt, c Change) (Outcome, error) {
	rule, keys, how := s.scripts.of(c, on), []string{ref.cartKey()}, script.Once
	if on.Key != "" {
		keys, how = append(keys, ref.keysKey()), script.Repeatable
	}
	var wait time.Duration
	if s.Durable {
		wait = replicaWait
	}
	for {
		home, err := s.masterOf(ctx, ref.cartKey())
		if err != nil {
			return Outcome{}, cart.Unavailable("find master", err)
		}
		deadline, err := home.deadline(ctx)
		if err != nil {
			return Outcome{}, cart.Unavailable("ask time", err)
		}
		if err := ctx.Err(); err != nil {
			return Outcome{}, cart.Unavailable("change cart", cause.Of(serverOf(home.client), time.Now(), err))
		}
		sent := time.Now()
		cmd, copies := s.runShared(ctx, home, rule, wait, how, keys, s.changeArgs(ref, on, with, deadline, c)...)
		o, now, err := s.parseOutcome(cmd)
		if now > 0 {
			home.learn(now, sent, copies.replied)
		}
		switch mayHaveChanged := o.Status == Applied || o.Status == "" && mayHaveRun(err); {
		case err != nil && on.Key == "" && mayHaveChanged && c.script != "check":
			return Outcome{}, cart.OutcomeUnknown("change cart", err)
		case err != nil:
			return Outcome{}, cart.Unavailable("change cart", err)
		case o.Status == late && ctx.Err() != nil:
			return Outcome{}, cart.Unavailable("change cart", errDeadlinePassed)
		case o.Status == late:
			continue // the estimate of Redis' clock was wrong; the reply has corrected it
		case s.Durable:
			o.Durability = copies.durability()
		}
		return o, nil
	}
}

var errDeadlinePassed = errors.New("redis ran it after its deadline, and changed nothing")

// changeArgs are ARGV as lua/change.lua has it. deadline is in ms by Redis' clock.
func (s *Store) changeArgs(ref Ref, on Conditions, with Attempt, deadline int64, c Change) []any {
	return append([]any{
		s.ttlOf(ref).Milliseconds(), with.CartID, on.IfMatch, on.Key, on.Fingerprint, on.Stamp, with.Ignore.members(), deadline, mark{},
	}, c.args...)
}

// parseOutcome parses the reply of lua/change.lua. now is Redis' time in ms; 0 without a reply.
// With the error of a cart that cannot be parsed, the outcome has its status.
func (s *Store) parseOutcome(cmd *redis.Cmd) (o Outcome, now int64, err error) {
	reply, err := cmd.Slice()
	if err != nil {
		return Outcome{}, 0, err
	}
	word, held, flat, left, now, line := reply[0].(string), reply[1].(int64), reply[2], reply[3].(int64), reply[4].(int64), reply[5].(string)
	s.announced(reply, 6)
	switch o.Status = Status(word); o.Status {
	case Replayed:
		o.At = held
	case Applied, MergeFirst, late:
	default:
		o.Status, o.Refusal = Refused, cart.Refusal{Code: problem.Code(word), Held: held}
	}
	if o.Status == Refused {
		o.Op, _ = strconv.Atoi(line) // "" if no list is refused for one of its operations
	} else {
		o.ChangedLine, o.Ops = parseChanged(line)
	}
	o.Stored, err = s.parseStored(flat, left, now)
	return o, now, err
}

// parseChanged parses what a change has changed: a line, or the outcomes of a list, each after a
// comma, as lua/ops.lua has them.
func parseChanged(word string) (cart.LineID, []OpOutcome) {
	list, isList := strings.CutPrefix(word, ",")
	if !isList {
		return cart.LineID(word), nil
	}
	var ops []OpOutcome
	for one := range strings.SplitSeq(list, ",") {
		var o OpOutcome
		if refusal, refused := strings.CutPrefix(one, "!"); refused {
			code, held, _ := strings.Cut(refusal, ".")
			n, _ := strconv.ParseInt(held, 10, 64)
			o.Refusal = &cart.Refusal{Code: problem.Code(code), Held: n}
		} else if one != "-" {
			o.Line = cart.LineID(one)
		}
		ops = append(ops, o)
	}
	return "", ops
}

// mayHaveRun reports whether a script that failed with err may still have changed
// something. It has not if it was never sent, or if Redis refused it.
func mayHaveRun(err error) bool {
	reply, refused := errors.AsType[redis.Error](err)
	if !refused {
		return !errors.Is(err, script.ErrNotSent)
	}
	text := reply.Error() // the text of err does not have the position in the script
	return strings.Contains(text, "user_script:") && !slices.ContainsFunc(beforeAnyWrite, func(said string) bool {
		return strings.Contains(text, said)
	})
}

// beforeAnyWrite lists the errors that stop a script before its first write. Any other
// error inside a script, such as NOPERM, may come after a write.
var beforeAnyWrite = []string{"OOM ", "READONLY ", "NOREPLICAS ", "MISCONF ", "WRONGTYPE ", "LAYOUT "}
