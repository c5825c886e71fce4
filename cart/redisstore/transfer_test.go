package redisstore_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/handover"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/transfer"
	undos "commerce/cart/undo"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// The largest carts that a setting allows, with all texts: two guests' that are handed over into one, and that one merged at a
// login. Redis' Lua passes no more than 7,999 values at once.
func TestTransfer_OfTheLargestCarts(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	ctx, limits := t.Context(), cart.Limits{Lines: 500, LineText: cart.MaxLineText, CartText: cart.MaxCartText, Quantity: 999}
	laptop := redisstore.GuestRef(d.store.ID, tokenOf("laptop"))
	move := func(from, to redisstore.Ref) {
		needs, note := assert.Must(d.redis.Load(ctx, from))(t).RoomNeeded(), newNote()
		assert.NoError(t, d.redis.Reserve(ctx, to, from, note, needs, limits, redisstore.Conditions{}))
		c := assert.Must(d.redis.Claim(ctx, to, from, note, needs, ""))(t)
		report := assert.Must(d.redis.Apply(ctx, to, c, transfer.MergeRules{Strategy: transfer.Sum, Bounds: transfer.MergeBounds(c.Cart, nil, limits)}, nil, rand.Text()))(t)
		assert.Equal(t, report.Lines, needs.Lines, "lines that have arrived")
		finish(d, from, c)
		assert.NoError(t, d.redis.Forget(ctx, to, note))
	}
	for i := range 2 {
		from := redisstore.GuestRef(d.store.ID, tokenOf(fmt.Sprint("phone", i)))
		var list []cart.Rule
		for n := range int64(500) {
			list = append(list, cart.Add(cart.NewLine{
				ID: cart.NewLineID(1000*int64(i+1)+n, 0, []cart.FieldValue{{Name: "f", Value: "v"}}), Quantity: 1, Fields: []cart.FieldValue{{Name: "f", Value: "v"}},
				Notice: "n", Metadata: cart.Metadata{"name": "value"}, Bounds: cart.Bounds{Stock: -1, Min: 1, Max: 9},
			}))
		}
		o := assert.Must(d.redis.Change(ctx, from, redisstore.Conditions{}, redisstore.Attempt{CartID: rand.Text()[:20], Limits: limits}, redisstore.Listed(false, list)))(t)
		assert.Require(t, o.Status == cart.Applied, "%s %+v", o.Status, o.Effect.Refusal)
		move(from, laptop)
	}
	move(laptop, d.customer)
	assert.Equal(t, len(assert.Must(d.redis.Load(ctx, d.customer))(t).Lines), 1000, "lines of the customer")
}

func (d *desk) undo(v *service.Visit, id, ifMatch string) (undos.Undone, error) {
	return d.undos.Undo(d.t.Context(), v, redisstore.Conditions{IfMatch: ifMatch}, id)
}

func TestUndo_HonorsIfMatch(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "1×1", "1×2")
	d.redis.Undoable = true
	seen, report := d.read(d.as("c", d.token))
	d.add(d.as("c", ""), 2, 1)
	_, err := d.undo(d.as("c", ""), report.ID, " "+seen.Tag()+" ")
	refusal := problemOf(err, problem.VersionMismatch)
	assert.That(t, refusal != nil && linesOf(refusal.Data.(*price.Priced).Cart) == "1×3 2×1", "by an old version: %v", err)
	now, _ := d.read(d.as("c", ""))
	assert.Must(d.undo(d.as("c", ""), report.ID, " "+now.Tag()+" "))(t)
	d.wantLines(d.as("c", ""), "1×1 2×1")
	assert.Must(d.undo(d.as("c", ""), report.ID, " "+now.Tag()+" "))(t) // a repeat
}

// Each answer about a change has a Durability, and without any replica none is confirmed.
func TestTransfer_WithoutReplicasNothingIsConfirmed(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×2")
	d.redis.Durable, d.redis.Undoable = true, true
	on := redisstore.Conditions{Key: "key", Fingerprint: "f"}
	add := func(v *service.Visit) service.Changed {
		return assert.Must(d.Add(t.Context(), v, on, cart.Addition{ProductID: 2, Quantity: 1}))(t)
	}
	add(d.as("", d.token))
	v := d.as("c", d.token)
	d.Merge(t.Context(), v, on.Key)
	again := add(v)
	assert.That(t, again.Replayed && again.Durability == "unconfirmed", "a replay across a login: %+v, %q", again.Replayed, again.Durability)
	_, report := d.read(d.as("c", ""))
	undone := assert.Must(d.undo(d.as("c", ""), report.ID, ""))(t)
	assert.Equal(t, undone.Durability, "unconfirmed", "an undo")
	_, redeemed := d.redeem(d.as("", ""), d.handOver(undone.Guest), "laptop")
	assert.Equal(t, redeemed.Durability, "unconfirmed", "a redemption")
}

var errBreaks = errors.New("connection reset by peer")

// breaks fails commands after Redis has run them.
type breaks struct {
	when func(redis.Cmder) bool
	err  error // nil: errBreaks
}

func (b *breaks) fail(cmds ...redis.Cmder) error { return fail(cmds, cmp.Or(b.err, errBreaks)) }

func (*breaks) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *breaks) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && b.when(cmd) {
			return b.fail(cmd)
		}
		return err
	}
}

func (b *breaks) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err == nil && b.when(cmds[len(cmds)-1]) {
			return b.fail(cmds...)
		}
		return err
	}
}

func TestRedeem_HonorsIfMatch(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "1×1", "1×2")
	code := d.handOver(d.token)
	seen, _ := d.read(d.as("c", ""))
	d.add(d.as("c", ""), 2, 1)
	redeem := func(of cart.Cart) (service.Changed, error) {
		return d.handovers.Redeem(t.Context(), d.as("c", ""), handover.Redemption{Code: code, Key: redeemKey("k"), IfMatch: " " + of.Tag() + " "})
	}
	_, err := redeem(seen)
	assert.That(t, problemOf(err, problem.VersionMismatch) != nil, "into an old version: %v", err)
	now, _ := d.read(d.as("c", ""))
	assert.Equal(t, linesOf(assert.Must(redeem(now))(t).Cart), "1×3 2×1", "into the version that was seen")
	assert.That(t, assert.Must(redeem(now))(t).Replayed, "again")
}

// A replay across a login explains a refusal as the first answer did.
func TestReplay_AcrossALoginExplainsItsRefusals(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×1")
	on := redisstore.Conditions{Key: "key", Fingerprint: "f"}
	list := func(v *service.Visit) *problem.Error {
		d.Merge(t.Context(), v, on.Key)
		changed := assert.Must(d.Ops(t.Context(), v, on, service.List{Each: true, Ops: []service.Op{{Edit: &service.Edit{Item: "9", Edit: cart.Edit{Notice: new("n")}}}}}))(t)
		return changed.Ops.Each[0].Refusal
	}
	first, again := list(d.as("", d.token)), list(d.as("c", d.token))
	assert.That(t, first != nil && again != nil && first.Error() == again.Error() && first.Code == problem.ItemNotFound, "first %v, then %v", first, again)
}

// after is a hook that runs once, after the first command that it is to follow, and loses its reply.
type after struct {
	follows func(redis.Cmder) bool
	run     func()
	ran     bool
}

func (*after) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *after) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if h.ran || err != nil || !h.follows(cmd) {
			return err
		}
		h.ran = true
		h.run()
		cmd.SetErr(errBreaks)
		return errBreaks
	}
}

func (*after) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A claim is made, its reply is lost, another request brings its line, and a failover loses the claim. The guest adds, and the
// repeat claims again. What the other request finishes is not this claim.
func TestClaim_EachDecisionHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×1")
	ctx, needs, note := t.Context(), d.brings(), d.reserve()
	dump := d.client.Dump(ctx, d.guest.CartKey()).Val()
	var found redisstore.Claimed
	client := dial(t, ephemeral.Redis(t))
	client.AddHook(&after{follows: claims, run: func() {
		found = assert.Must(d.redis.Claim(ctx, d.customer, d.guest, "", cart.Reservation{}, ""))(t)
		d.bring(d.customer, found)
		d.client.Del(ctx, d.guest.ClaimedKey(), d.guest.CartKey())
		assert.NoError(t, d.client.Restore(ctx, d.guest.CartKey(), time.Hour, dump).Err())
		d.add(d.as("", d.token), 1, 4)
	}})
	s := redisstore.New(redisstore.Config{Client: client, TTL: usualTTLs})
	s.Unhurried()
	second := assert.Must(s.Claim(ctx, d.customer, d.guest, note, needs, ""))(t)
	assert.That(t, second.Claim != found.Claim && !second.Again, "both are %+v", second.Claim)
	finish(d, d.guest, found)
	d.wantLines(d.as("c", d.token), "1×5")
}

// The reply of an undo is lost just before its time is over: it is made, and tells where the lines are.
func TestUndo_AtTheEndOfItsTimeKeepsWhatItTookOut(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×2")
	d.redis.Undoable = true
	_, report := d.read(d.as("c", d.token))
	d.redis.Client.AddHook(&after{follows: isUndo, run: func() { d.pass(transfer.UndoLife - time.Second) }})
	d.redis.Unhurried()
	undone, err := d.undo(d.as("c", ""), report.ID, "")
	assert.Require(t, err == nil, "%v", err)
	d.wantLines(d.as("", undone.Guest), "1×2")
	again, err := d.undo(d.as("c", ""), report.ID, "")
	assert.That(t, err == nil && again.Guest == undone.Guest, "a repeat: %v", err)
}

// isUndo reports whether a command undoes a merge.
func isUndo(cmd redis.Cmder) bool {
	return strings.Contains(fmt.Sprint(cmd.Args()...), `"UndoneAs":"`)
}

// Redis is gone after it has made an undo. The answer does not say that nothing was changed.
func TestUndo_ThatMayBeMadeIsUnknown(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×2")
	d.redis.Undoable = true
	_, report := d.read(d.as("c", d.token))
	gone := false
	d.redis.Client.AddHook(&breaks{when: func(cmd redis.Cmder) bool {
		gone = gone || isUndo(cmd)
		return gone
	}})
	_, err := d.undo(d.as("c", ""), report.ID, "")
	assert.That(t, isProblem(err, problem.OutcomeUnknown), "got %v", err)
	gone = false
}

// A request dies after it has listed a share, and a repeat keeps the share a day later: the list leads to it as long as it lives.
func TestShare_IsListedAsLongAsItLives(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×2")
	code := d.share(d.as("", d.token), "k").Code
	for _, key := range d.keys() {
		if strings.Contains(key, ":s:") {
			assert.NoError(t, d.client.Del(t.Context(), key).Err())
		}
	}
	d.pass(24 * time.Hour)
	assert.Equal(t, d.share(d.as("", d.token), "k").Code, code, "code")
	d.pass(29*24*time.Hour + time.Hour)
	d.add(d.as("", d.token), 2, 1) // the cart lives
	d.wantShared(code, "1×2")
	d.eraseUntilNothing(d.guest, &then{follows: func(redis.Cmder, error) bool { return false }})
	d.wantShared(code, "")
}

// A keyed call begins, and the reply is lost: the call runs, and does not find itself running.
func TestOnce_ALostReplyIsNotAnotherAttempt(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	begins := func(cmd redis.Cmder) bool {
		return cmd.FullName() == redisstore.ScriptName && strings.Contains(fmt.Sprint(cmd.Args()...), ":results")
	}
	d.redis.Client.AddHook(&after{follows: begins, run: func() {}})
	k := &keyed{carts: d.agents}
	result := assert.Must(k.create(d, "key", "1×1"))(t)
	assert.That(t, strings.HasSuffix(result, " 1×1, run 1\x00\n"), "the result is %q", result)
	assert.Equal(t, assert.Must(k.create(d, "key", "1×1"))(t), result, "a repeat")
}

// The cart cannot be shown after an undo: the answer does not say that nothing was changed.
func TestUndo_ThatCannotBeShownIsUnknown(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "1×1", "1×2")
	d.redis.Undoable = true
	_, report := d.read(d.as("c", d.token))
	d.redis.Client.AddHook(&then{follows: func(cmd redis.Cmder, _ error) bool { return isUndo(cmd) }, run: func() { d.goods.out.Store(1) }})
	_, err := d.undo(d.as("c", ""), report.ID, "")
	assert.That(t, isProblem(err, problem.OutcomeUnknown), "got %v", err)
	d.goods.out.Store(0)
	again := assert.Must(d.undo(d.as("c", ""), report.ID, ""))(t)
	d.wantLines(d.as("", again.Guest), "1×2")
}
