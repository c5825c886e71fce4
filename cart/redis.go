package cart

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart/money"
)

// Redis keeps carts: one hash each, changed by one script in one round trip.
// It knows how a cart lies there and what must be atomic; what a cart may hold is
// passed in as bounds. Any Redis from 7.0 on serves, single, cluster or sentinel.
type Redis struct {
	client      redis.UniversalClient
	scripts     scripts
	ttl         TTLs
	limits      Limits
	durable     bool
	minReplicas int
	sentinels   func(context.Context, time.Duration) (int, error)
	masters     *masters
}

// RedisConfig is what a Redis needs.
type RedisConfig struct {
	// Client must follow redirections, and may retry: commands that must not run
	// twice opt out. Its settings are the caller's concern.
	Client redis.UniversalClient
	TTL    TTLs
	Limits Limits

	// Durable makes every change wait, for a bounded time, until all replicas have
	// it, and say whether they do.
	Durable bool

	// MinReplicas is how many replicas each master has at least; 0 when it is not
	// known. A merge drops the guest's cart only after so many have confirmed it.
	MinReplicas int

	// Sentinels asks how many replicas the sentinels list that have answered them
	// within the given time; nil without sentinels.
	Sentinels func(context.Context, time.Duration) (int, error)

	Now func() time.Time // for what is remembered about masters; default time.Now
}

// TTLs are how long carts live after they were last read or changed.
type TTLs struct {
	Guest    time.Duration
	Customer time.Duration
}

// Limits bound what a cart may hold. A merge may take a customer's cart past Lines and
// CartText, up to twice either.
type Limits struct {
	Lines    int64 // lines of a cart
	Quantity int64 // of one line
	LineText int64 // bytes of fields and notice of one line
	CartText int64 // bytes of fields and notices of a cart
}

// NewRedis fills in the defaults.
func NewRedis(c RedisConfig) *Redis {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Redis{
		client: c.Client, scripts: newScripts(), ttl: c.TTL, limits: c.Limits, durable: c.Durable,
		minReplicas: c.MinReplicas, sentinels: c.Sentinels, masters: newMasters(c.Now),
	}
}

func (r *Redis) ttlOf(ref Ref) time.Duration {
	if ref.guest {
		return r.ttl.Guest
	}
	return r.ttl.Customer
}

// Load reads a cart and renews its TTL. It creates nothing: where no cart lies, it
// returns the zero Cart.
func (r *Redis) Load(ctx context.Context, ref Ref, now time.Time) (Cart, error) {
	return readCart(r.scripts.read.run(ctx, r.client, repeatable,
		[]string{ref.cartKey()}, r.ttlOf(ref).Milliseconds()), now)
}

// readCart takes what read.lua replied.
func readCart(cmd *redis.Cmd, now time.Time) (Cart, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return Cart{}, unavailable("read cart", err)
	}
	cart, err := parseCart(reply[0].([]any), reply[1].(int64), now)
	if err != nil {
		return Cart{}, unavailable("read cart", err)
	}
	return cart, nil
}

// Conditions are the terms on which a change is asked for.
type Conditions struct {
	Now         time.Time
	CartID      string // for the cart, should it begin with this change
	IfMatch     string // "" for none, "*", or " <id>.<version> …" with spaces around each
	Key         string // digest of the idempotency key, "" for none
	Fingerprint string // digest of method, path and body; "" without a key
	Stamp       string // digest of method, path, body and X-Timestamp; "" with a key, or without either

	passBy string // the notes of merges that could not be driven, as notes.members lists them
}

// outcome is what a change came to, as change.lua says it: applied, replayed, late,
// resume or the code of a refusal, with that one's numbers.
type outcome struct {
	word string
	a, b int64
	cart Cart // as it is after the change

	durability string // confirmed or unconfirmed; "" where nobody waits for replicas

	merged *MergeReport // of what had to be merged first; nil for nothing
}

const (
	applied  = "applied"
	replayed = "replayed"
	resume   = "resume"
	late     = "late"
)

// change runs one of the change scripts. It changes nothing after ctx has ended, even
// where Redis gets to it only then. Without a key it is sent once only, since a lost
// answer may hide a change that was made: that is outcome_unknown.
func (r *Redis) change(ctx context.Context, s script, ref Ref, on Conditions, args ...any) (outcome, error) {
	for {
		o, err := r.changeOnce(ctx, s, ref, on, args...)
		if err != nil || o.word != late {
			return o, err
		}
		// Redis' clock was not what it was taken for, and is known better now.
		if ctx.Err() != nil {
			return outcome{}, unavailable("change cart", errLate)
		}
	}
}

// errLate says that a change came to Redis after its deadline, and was not made.
var errLate = errors.New("cart: too late for the change")

func (r *Redis) changeOnce(ctx context.Context, s script, ref Ref, on Conditions, args ...any) (outcome, error) {
	client, m, err := r.masterOf(ctx, ref.cartKey())
	if err != nil {
		return outcome{}, unavailable("find master", err)
	}
	deadline, err := m.deadline(ctx, client)
	if err != nil {
		return outcome{}, unavailable("ask time", err)
	}
	if err := ctx.Err(); err != nil {
		return outcome{}, unavailable("change cart", err)
	}
	keys, how := []string{ref.cartKey()}, once
	if on.Key != "" {
		keys, how = append(keys, ref.keysKey()), repeatable
	}
	all := append([]any{
		r.ttlOf(ref).Milliseconds(), on.CartID, on.IfMatch, on.Key, on.Fingerprint, on.Stamp, on.passBy, deadline,
	}, args...)
	sent := time.Now()
	var cmd *redis.Cmd
	var p replication
	var durability string
	if r.durable {
		cmd, p = r.runReplicated(ctx, s, replicaWait, how, keys, all...)
		durability = p.durability()
	} else {
		cmd = s.run(ctx, r.client, how, keys, all...)
		p.replied = time.Now()
	}
	reply, err := cmd.Slice()
	if err != nil && on.Key == "" && mayHaveRun(err) && s.sha != r.scripts.judge.sha {
		return outcome{}, outcomeUnknown("change cart", err)
	}
	if err != nil {
		return outcome{}, unavailable("change cart", err)
	}
	m.learn(reply[5].(int64), sent, p.replied)
	cart, err := parseCart(reply[3].([]any), reply[4].(int64), on.Now)
	if err != nil {
		return outcome{}, unavailable("change cart", err)
	}
	return outcome{word: reply[0].(string), a: reply[1].(int64), b: reply[2].(int64), cart: cart, durability: durability}, nil
}

// mayHaveRun reports whether a script that failed in this way may have changed something
// all the same: it did not when it was never sent, or when Redis refused it.
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

// beforeAnyWrite are the errors that end a script before its first write. Any other one
// that comes from within a script, such as NOPERM, may come after it.
var beforeAnyWrite = []string{"OOM ", "READONLY ", "NOREPLICAS ", "MISCONF ", "WRONGTYPE ", "LAYOUT "}

// bounds are what the catalogue and the limits say about one line.
type bounds struct {
	stock       int64 // -1: unlimited
	least, most int64
}

// newLine is a line ready to be added.
type newLine struct {
	id       LineID
	quantity int64
	price    money.Amount // unit price now
	fields   []FieldValue
	notice   string
	bounds
}

func (r *Redis) add(ctx context.Context, ref Ref, on Conditions, l newLine) (outcome, error) {
	return r.change(ctx, r.scripts.add, ref, on,
		string(l.id), l.quantity, int64(l.price), encodeFields(l.fields), l.notice,
		l.stock, l.least, l.most, r.limits.Lines, r.limits.CartText)
}

// set changes the quantity of a line; never says why it may not be raised, "" when
// it may.
func (r *Redis) set(ctx context.Context, ref Ref, on Conditions, item LineID, quantity int64, b bounds, never Code) (outcome, error) {
	return r.change(ctx, r.scripts.set, ref, on, string(item), quantity, b.stock, b.least, b.most, string(never))
}

func (r *Redis) remove(ctx context.Context, ref Ref, on Conditions, item LineID) (outcome, error) {
	return r.change(ctx, r.scripts.remove, ref, on, string(item))
}

func (r *Redis) clear(ctx context.Context, ref Ref, on Conditions) (outcome, error) {
	return r.change(ctx, r.scripts.clear, ref, on)
}

// coupon gives the cart a coupon; "" takes it away.
func (r *Redis) coupon(ctx context.Context, ref Ref, on Conditions, code string) (outcome, error) {
	return r.change(ctx, r.scripts.coupon, ref, on, code)
}

// judge says whether a change that is refused anyway is a repeat, or comes too late.
func (r *Redis) judge(ctx context.Context, ref Ref, on Conditions) (outcome, error) {
	return r.change(ctx, r.scripts.judge, ref, on)
}
