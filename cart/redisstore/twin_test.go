package redisstore_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/ephemeral"
)

// Scripts merge carts. cart.Merge and Record state the same as pure functions. The tests of twins run random steps of merges
// on both, and compare what they answer and what they leave after each.

// twins are carts in a real Redis, and the Record of each.
type twins struct {
	t      *rapid.T
	ctx    context.Context
	store  *redisstore.Store
	client redis.UniversalClient
	carts  map[redisstore.Ref]*twin
	ids    int // of carts, given so far

	// Redis' clock cannot be set: what lies there is made older, and the twins' clock is ahead.
	passed time.Duration
	clock  time.Time // the twins', when Redis last told the time
}

type twin struct {
	Record
	lapses time.Time // when it is not renewed before; zero for nothing there

	underWay cart.Notes // now
}

type bench struct {
	client redis.UniversalClient
	store  *redisstore.Store
}

func openBench(t *testing.T) bench {
	t.Helper()
	client := dial(t, asService(t, ephemeral.Redis(t)))
	return bench{dial(t, ephemeral.Redis(t)), redisstore.New(redisstore.Config{Client: client, TTL: usualTTLs, Undoable: true})}
}

func (b bench) begin(ctx context.Context, t *rapid.T, refs ...redisstore.Ref) *twins {
	w := &twins{t: t, ctx: ctx, store: b.store, client: b.client, carts: map[redisstore.Ref]*twin{}}
	for _, ref := range refs {
		w.carts[ref] = &twin{}
	}
	w.observe(refs[0])
	return w
}

// newID is of a cart, and as long as notes keep it.
func (w *twins) newID() string {
	w.ids++
	return fmt.Sprintf("cart-%05d", w.ids)
}

// becomes is what a step makes of a record at some moment.
type becomes struct {
	Record
	answer any
	renews bool // the record lives its whole life from then on
}

// step does something to the cart under ref, and fails when Redis' answer, or what it
// leaves, is not what the twin says. Redis did it at some moment before it tells the time
// again: one of them must fit.
func (w *twins) step(ref redisstore.Ref, do func() any, rule func(r Record, now time.Time) becomes) {
	w.t.Helper()
	own, from := w.carts[ref], w.clock
	if !own.lapses.IsZero() && from.After(own.lapses) {
		own.Record, own.lapses = own.Lapse(), time.Time{}
	}
	answer := do()
	found, left := w.observe(ref)
	now := from.Add(-redisstore.Tolerance)
	next := rule(own.Record, now)
	for !next.is(answer, found, now) {
		if now.Equal(w.clock) {
			w.t.Fatalf("%s: Redis differs from the rules (-rules +Redis)\n%s", ref.String(), next.diff(answer, found, now))
		}
		if now = now.Add(time.Millisecond); now.After(w.clock) {
			now = w.clock
		}
		next = rule(own.Record, now)
	}
	if drawn := found.Cart.Mark != own.Cart.Mark; drawn != (next.Cart.Version != own.Cart.Version) {
		w.t.Fatalf("%s: the mark of version %d is %q, that of version %d before was %q", ref.String(),
			found.Cart.Version, found.Cart.Mark, own.Cart.Version, own.Cart.Mark)
	}
	claimed := own.Cart.ID != "" && next.Cart.ID == "" // what stays under the token is a new hash
	own.Record = next.Record
	own.Cart.Mark = found.Cart.Mark
	own.Memory, own.Merged = found.Memory, found.Merged // the same, and what counts no more only where Redis still has it
	life := next.Life(ttlOf(ref))
	rest := own.lapses.Truncate(time.Second).Sub(now) // as the cart's member x has it
	renewed := next.renews && (claimed || rest > life || rest <= life-life/720)
	if renewed {
		own.lapses = now.Add(life)
	}
	if due := w.clock.Add(left).Sub(own.lapses).Abs(); left == -1 || left >= 0 && due > w.clock.Sub(from)+time.Second {
		w.t.Fatalf("%s lapses in %v, which is %v from when it should", ref.String(), left, due)
	} else if renewed && left >= 0 {
		own.lapses = w.clock.Add(left) // now is only the earliest of the moments that fit
	}
}

func ttlOf(ref redisstore.Ref) time.Duration {
	if ref.IsGuest() {
		return usualTTLs.Guest
	}
	return usualTTLs.Customer
}

var likeTwins = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(cart.Cart{}, "ExpiresAt", "Mark")}

// is reports whether the answer and the record are what should be at a moment.
func (b becomes) is(answer any, found Record, now time.Time) bool {
	want, got := alive(b.Record, now), alive(found, now)
	return sameNewest(want.Memory.Stamps, got.Memory.Stamps, cart.StampsKept, func(use cart.StampUse) time.Time { return use.At }) &&
		sameNewest(want.Memory.Keys, got.Memory.Keys, KeysKept, func(use cart.KeyUse) time.Time { return use.At }) &&
		cmp.Equal(b.answer, answer, likeTwins) && cmp.Equal(want.Cart, got.Cart, likeTwins) && maps.Equal(want.Merges, got.Merges) &&
		cmp.Equal(want.Merged, got.Merged, likeTwins)
}

func (b becomes) diff(answer any, found Record, now time.Time) string {
	return cmp.Diff(b.answer, answer, likeTwins) + cmp.Diff(alive(b.Record, now), alive(found, now), likeTwins)
}

// sameNewest reports whether both sides kept the same. Where there are as many as are
// kept, it is open which of several with the oldest time these are.
func sameNewest[V any](want, got map[string]V, kept int, at func(V) time.Time) bool {
	if len(want) != kept || len(got) != kept {
		return cmp.Equal(want, got, likeTwins)
	}
	oldest := slices.MinFunc(slices.Collect(maps.Values(want)), func(a, b V) int { return at(a).Compare(at(b)) })
	for name, w := range want {
		if g, ok := got[name]; ok && !cmp.Equal(g, w) || !ok && !at(w).Equal(at(oldest)) {
			return false
		}
	}
	for name, g := range got {
		if _, ok := want[name]; !ok && !at(g).Equal(at(oldest)) {
			return false
		}
	}
	return true
}

// alive leaves out what counts no more. When it is dropped is each side's own business.
func alive(r Record, now time.Time) Record {
	r.Memory = Memory{Keys: maps.Clone(r.Memory.Keys), Stamps: maps.Clone(r.Memory.Stamps)}
	maps.DeleteFunc(r.Memory.Keys, func(_ string, use cart.KeyUse) bool { return now.Sub(use.At) >= KeyLife })
	maps.DeleteFunc(r.Memory.Stamps, func(_ string, use cart.StampUse) bool { return now.Sub(use.At) > cart.StampLife })
	if r.Merged != nil && now.Sub(r.Merged.At) > cart.ReportLife {
		r.Merged = nil
	}
	return r
}

// observe reads what lies under ref, and the time. left is negative where PTTL is.
func (w *twins) observe(ref redisstore.Ref) (_ Record, left time.Duration) {
	w.t.Helper()
	pipe := w.client.Pipeline()
	told, hash, keys := pipe.Time(w.ctx), pipe.HGetAll(w.ctx, ref.CartKey()), pipe.HGetAll(w.ctx, ref.KeysKey())
	ttl := pipe.PTTL(w.ctx, ref.CartKey())
	if _, err := pipe.Exec(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	w.clock = w.at(told.Val().UnixMilli())
	var r Record
	var flat, ofStamps []string
	packed := ""
	for member, value := range hash.Val() {
		flat = append(flat, member, value)
		switch member[0] {
		case 'r':
			if len(value) > 60 {
				w.t.Fatalf("%s has %d bytes", member, len(value))
			}
			packed += value
		case 'e':
			ofStamps = append(ofStamps, member[1:])
		case 'x':
			// x is in whole seconds, and each jump of the clock rounds it down.
			says := time.Unix(number(w.t, value), 0)
			if late := told.Val().Add(ttl.Val()).Sub(says); late < -10*time.Millisecond || late > time.Minute {
				w.t.Fatalf("the cart expires %v after what it says", late)
			}
		case 'm':
			r.Merges = putIn(r.Merges, member, reservation(w.t, value))
		}
	}
	for _, stamp := range ofStamps {
		if !strings.Contains(packed, stamp) {
			w.t.Fatalf("the line of %s outlives its stamp", stamp)
		}
	}
	held, err := redisstore.ParseCart(flat)
	if err != nil {
		w.t.Fatal(err)
	}
	for stamp, use := range held.Stamps.All() {
		use.At = w.at(use.At.UnixMilli())
		r.Memory.Stamps = putIn(r.Memory.Stamps, stamp, use)
	}
	for key, value := range keys.Val() {
		use := redisstore.ParseKeyUse(value)
		use.At, use.Ops = w.at(use.At.UnixMilli()), nil
		r.Memory.Keys = putIn(r.Memory.Keys, key, use)
	}
	if held.Report != nil {
		r.Merged = new(*held.Report)
	}
	if r.Merged != nil {
		r.Merged.At = w.at(r.Merged.At.UnixMilli())
	}
	r.Cart, w.carts[ref].underWay = held.Cart, held.Pending
	return r, ttl.Val()
}

// at is the twins' time for a time that lies in Redis now.
func (w *twins) at(ms int64) time.Time { return time.UnixMilli(ms).Add(w.passed) }

func number(t *rapid.T, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func reservation(t *rapid.T, note string) (r cart.Reservation) {
	var guest string
	var seconds int64
	note, r.Applied = strings.CutSuffix(note, " applied")
	if _, err := fmt.Sscanf(note, "%s %d %d %d %s", &guest, &seconds, &r.Lines, &r.Text, &r.CartID); err != nil {
		t.Fatalf("note %q: %v", note, err)
	}
	return r
}

func (w *twins) pass(t *rapid.T) {
	by := time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond
	switch rapid.IntRange(0, 9).Draw(t, "longer") {
	case 0:
		by = KeyLife - time.Duration(rapid.IntRange(-60, 60).Draw(t, "seconds"))*time.Second
	case 1, 2:
		by = time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds")) * time.Second
	}
	w.passAbout(by)
}

// passAbout lets so much time pass, or more.
func (w *twins) passAbout(by time.Duration) {
	for w.nearALapse(by) {
		by += 10 * time.Second
	}
	w.age(by)
}

// nearALapse reports whether Redis could drop a key about then, give or take a millisecond.
func (w *twins) nearALapse(by time.Duration) bool {
	near := func(at time.Time) bool { return w.clock.Add(by).Sub(at).Abs() < 5*time.Second }
	for _, own := range w.carts {
		if near(own.lapses) {
			return true
		}
		for _, use := range own.Memory.Keys {
			if near(use.At.Add(KeyLife)) {
				return true
			}
		}
	}
	return false
}

func (w *twins) age(by time.Duration) {
	var keys []string
	for ref := range w.carts {
		keys = append(keys, ref.CartKey(), ref.KeysKey(), ref.ClaimedKey())
	}
	if err := carttest.Age(w.ctx, w.client, by, keys...); err != nil {
		w.t.Fatal(err)
	}
	w.passed += by
	w.clock = w.clock.Add(by)
}
