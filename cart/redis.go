package cart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart/money"
)

// Redis keeps carts: one hash each, changed by one script in one round trip.
// It knows how a cart lies there and what must be atomic; what a cart may hold is
// passed in as bounds. Any Redis from 7.0 on serves, single, cluster or sentinel.
type Redis struct {
	client  redis.UniversalClient
	scripts scripts
	ttl     TTLs
	limits  Limits
	confirm bool // every change waits for its replicas

	laggards *laggards
}

// TTLs are how long carts live after they were last read or changed.
type TTLs struct {
	Guest    time.Duration
	Customer time.Duration
}

// Limits bound what a cart may hold.
type Limits struct {
	Lines    int64 // lines of a cart, for adds; a merge may exceed it
	Quantity int64 // of one line
	LineText int64 // bytes of fields and notice of one line
	CartText int64 // bytes of fields and notices of a cart
}

// NewRedis takes a client whose settings are the caller's concern; it must follow
// redirections and may retry, for commands that must not be repeated opt out.
func NewRedis(client redis.UniversalClient, ttl TTLs, limits Limits) *Redis {
	return &Redis{client: client, scripts: newScripts(), ttl: ttl, limits: limits, laggards: &laggards{until: map[string]time.Time{}}}
}

// Confirming returns a Redis whose every change waits, for a bounded time, until all
// replicas have it, and says whether they do.
func (r *Redis) Confirming() *Redis {
	confirming := *r
	confirming.confirm = true
	return &confirming
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
	reply, err := r.scripts.read.run(ctx, r.client, repeatable,
		[]string{ref.cartKey()}, r.ttlOf(ref).Milliseconds()).Slice()
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
	Stamp       string // digest of method, path, body and X-Timestamp; "" without either

	passBy string // the notes of merges that could not be driven, as the cart has them; "" for none
}

// outcome is what a change came to, as change.lua says it: applied, replayed,
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
)

// change runs one of the change scripts. Without a key it is sent once only, since
// a lost answer may hide a change that was made.
func (r *Redis) change(ctx context.Context, s script, ref Ref, on Conditions, args ...any) (outcome, error) {
	all := append([]any{
		on.Now.UnixMilli(), r.ttlOf(ref).Milliseconds(), on.CartID,
		on.IfMatch, on.Key, on.Fingerprint, on.Stamp, on.passBy,
	}, args...)
	how := once
	if on.Key != "" {
		how = repeatable
	}
	keys := []string{ref.cartKey(), ref.replaysKey()}
	var cmd *redis.Cmd
	var durability string
	if r.confirm {
		var p replication
		cmd, p = s.runReplicated(ctx, r.client, r.laggards, how, keys, all...)
		durability = p.durability()
	} else {
		cmd = s.run(ctx, r.client, how, keys, all...)
	}
	reply, err := cmd.Slice()
	if err != nil {
		return outcome{}, unavailable("change cart", err)
	}
	cart, err := parseCart(reply[3].([]any), reply[4].(int64), on.Now)
	if err != nil {
		return outcome{}, unavailable("change cart", err)
	}
	return outcome{word: reply[0].(string), a: reply[1].(int64), b: reply[2].(int64), cart: cart, durability: durability}, nil
}

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

// errLayout is a cart whose hash says what no version of this code has written.
var errLayout = errors.New("cart: not a cart's layout")

// parseCart reads the flat list of a cart's hash.
func parseCart(flat []any, ttl int64, now time.Time) (Cart, error) {
	var c Cart
	if len(flat) == 0 {
		return c, nil
	}
	if ttl > 0 {
		c.ExpiresAt = now.Add(time.Duration(ttl) * time.Millisecond)
	}
	stored := make([]storedLine, 0, len(flat)/2)
	var texts map[string]string
	for i := 0; i+1 < len(flat); i += 2 {
		member, value := flat[i].(string), flat[i+1].(string)
		switch {
		case member == "i":
			c.ID = value
		case member == "v":
			c.Version, _ = strconv.ParseInt(value, 10, 64)
		case member == "c":
			c.Coupon = value
		case member == "m":
			c.unfinished = parseNotes(value)
		case member[0] < '0' || member[0] > '9':
		case strings.IndexByte(member, ':') >= 0:
			if texts == nil {
				texts = map[string]string{}
			}
			texts[member] = value
		default:
			line, err := parseLine(member, value)
			if err != nil {
				return Cart{}, err
			}
			stored = append(stored, line)
		}
	}
	if c.Version == 0 {
		c.ExpiresAt = time.Time{} // only a merge's note: nothing of a cart yet
	}
	slices.SortFunc(stored, func(a, b storedLine) int { return cmp.Compare(a.order, b.order) })
	c.Lines = make([]Line, len(stored))
	for i, s := range stored {
		c.Lines[i] = s.Line
		if texts == nil {
			continue
		}
		fields, err := decodeFields(texts[string(s.ID)+":f"])
		if err != nil {
			return Cart{}, fmt.Errorf("fields of line %s: %w", s.ID, err)
		}
		c.Lines[i].Fields, c.Lines[i].Notice = fields, texts[string(s.ID)+":n"]
	}
	return c, nil
}

type storedLine struct {
	Line
	order int64
}

// parseLine reads "<quantity> <order> <unit price when added>".
func parseLine(id, value string) (storedLine, error) {
	quantity, rest, _ := strings.Cut(value, " ")
	order, price, _ := strings.Cut(rest, " ")
	q, err1 := strconv.ParseInt(quantity, 10, 64)
	o, err2 := strconv.ParseInt(order, 10, 64)
	p, err3 := strconv.ParseInt(price, 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return storedLine{}, fmt.Errorf("line %s: %w", id, errLayout)
	}
	return storedLine{Line: Line{ID: LineID(id), Quantity: q, AddedPrice: money.Amount(p)}, order: o}, nil
}
