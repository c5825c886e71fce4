package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/cart"
)

// Change is one change of a cart: the script that makes it, and that script's own
// arguments.
type Change struct {
	script func(scripts) script
	args   []any
}

// Add adds to a line, or begins it. Refusals: cart_full, quantity_out_of_range,
// out_of_stock, insufficient_stock.
func Add(l cart.NewLine, limits cart.Limits) Change {
	return Change{func(s scripts) script { return s.add }, []any{
		string(l.ID), l.Quantity, int64(l.Price), encodeFields(l.Fields), l.Notice,
		l.Bounds.Stock, l.Bounds.Min, l.Bounds.Max, limits.Lines, limits.CartText,
	}}
}

// SetQuantity sets the quantity of a line; 0 removes it. raise is the code for which
// the product may not be raised at all; "" when it may. Refusals: item_not_found, that
// code, quantity_out_of_range, out_of_stock, insufficient_stock.
func SetQuantity(item cart.LineID, quantity int64, b cart.Bounds, raise problem.Code) Change {
	return Change{
		func(s scripts) script { return s.set },
		[]any{string(item), quantity, b.Stock, b.Min, b.Max, string(raise)},
	}
}

// Remove removes a line. Removing a line that is not there changes nothing.
func Remove(item cart.LineID) Change {
	return Change{func(s scripts) script { return s.remove }, []any{string(item)}}
}

// Clear removes all lines and the coupon.
func Clear() Change { return Change{script: func(s scripts) script { return s.clear }} }

// SetCoupon gives the cart a coupon; "" removes it.
func SetCoupon(code string) Change {
	return Change{func(s scripts) script { return s.coupon }, []any{code}}
}

// Judge runs only the replay and If-Match checks, which take precedence over the
// refusal of a change that is refused anyway. It changes nothing.
func Judge() Change { return Change{script: func(s scripts) script { return s.judge }} }

// Conditions are what a client sends with a change beside what it changes.
type Conditions struct {
	IfMatch     string // "" for none, "*", or " <id>.<version> …" with spaces around each
	Key         string // digest of the idempotency key, "" for none
	Fingerprint string // digest of method, path and body; "" without a key
	Stamp       string // digest of method, path, body and X-Timestamp; "" with a key, or without either
}

// Attempt is what the service adds to a change.
type Attempt struct {
	CartID string // for a cart that begins with this change
	PassBy Notes  // merges that cannot be driven now: the change is made without them
}

// Outcome is what a change came to.
type Outcome struct {
	Word Word
	A, B int64 // of a refusal, as cart.Refusal has them
	Held       // as it is after the change

	Durability string // confirmed or unconfirmed; "" where nothing waits for replicas
}

// Word is an outcome: one of these, or the code of a refusal.
type Word string

// The words that are not the code of a refusal.
const (
	Applied  Word = "applied"
	Replayed Word = "replayed" // it was applied before; nothing changed now
	Resume   Word = "resume"   // a merge must be driven to its end first; nothing was done

	late Word = "late"
)

// Change makes a change. It changes nothing after ctx has ended, even where Redis gets
// to it only then. Without a key it is sent once only, since a lost reply may hide a
// change that was made: that is outcome_unknown.
func (s *Store) Change(ctx context.Context, ref Ref, on Conditions, with Attempt, c Change) (Outcome, error) {
	for {
		o, err := s.changeOnce(ctx, ref, on, with, c)
		if err != nil || o.Word != late {
			return o, err
		}
		// The estimate of Redis' clock was wrong, and is better now.
		if ctx.Err() != nil {
			return Outcome{}, cart.Unavailable("change cart", errLate)
		}
	}
}

// errLate is a change that reached Redis after its deadline, and was not made.
var errLate = errors.New("redisstore: too late for the change")

func (s *Store) changeOnce(ctx context.Context, ref Ref, on Conditions, with Attempt, c Change) (Outcome, error) {
	home, err := s.masterOf(ctx, ref.cartKey())
	if err != nil {
		return Outcome{}, cart.Unavailable("find master", err)
	}
	deadline, err := home.deadline(ctx)
	if err != nil {
		return Outcome{}, cart.Unavailable("ask time", err)
	}
	if err := ctx.Err(); err != nil {
		return Outcome{}, cart.Unavailable("change cart", err)
	}
	keys, how := []string{ref.cartKey()}, once
	if on.Key != "" {
		keys, how = append(keys, ref.keysKey()), repeatable
	}
	args := append([]any{
		s.ttlOf(ref).Milliseconds(), with.CartID, on.IfMatch, on.Key, on.Fingerprint, on.Stamp, with.PassBy.members(), deadline,
	}, c.args...)
	script := c.script(s.scripts)
	sent := time.Now()
	cmd, written := s.write(ctx, home, script, how, keys, args)
	reply, err := cmd.Slice()
	if err != nil && on.Key == "" && mayHaveRun(err) && script.sha != s.scripts.judge.sha {
		return Outcome{}, cart.OutcomeUnknown("change cart", err)
	}
	if err != nil {
		return Outcome{}, cart.Unavailable("change cart", err)
	}
	home.learn(reply[5].(int64), sent, written.replied)
	held, err := parseCart(reply[3].([]any), reply[4].(int64), s.now())
	if err != nil {
		return Outcome{}, cart.Unavailable("change cart", err)
	}
	return Outcome{
		Word: Word(reply[0].(string)), A: reply[1].(int64), B: reply[2].(int64), Held: held, Durability: written.durability,
	}, nil
}

// written is when a change was written, and how far it got.
type written struct {
	replied    time.Time
	durability string
}

// write runs a change's script and, where changes are durable, waits for replicas.
func (s *Store) write(ctx context.Context, home located, c script, how sending, keys []string, args []any) (*redis.Cmd, written) {
	if !s.durable {
		cmd := c.run(ctx, s.client, how, keys, args...)
		return cmd, written{replied: time.Now()}
	}
	cmd, p := s.runReplicated(ctx, home, c, replicaWait, how, keys, args...)
	return cmd, written{p.replied, p.durability()}
}

// mayHaveRun reports whether a script that failed in this way may have changed something
// all the same. It did not when it was never sent, or when Redis refused it.
func mayHaveRun(err error) bool {
	if errors.Is(err, errNotSent) {
		return false
	}
	if _, refused := errors.AsType[redis.Error](err); !refused {
		return true
	}
	return strings.Contains(err.Error(), "user_script:") && !slices.ContainsFunc(beforeAnyWrite, func(said string) bool {
		return strings.Contains(err.Error(), said)
	})
}

// beforeAnyWrite are the errors that end a script before its first write. Any other
// error from within a script, such as NOPERM, may come after it.
var beforeAnyWrite = []string{"OOM ", "READONLY ", "NOREPLICAS ", "MISCONF ", "WRONGTYPE ", "LAYOUT "}
