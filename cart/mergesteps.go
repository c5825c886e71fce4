package cart

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The steps of a merge. Each is one script, atomic in its own slot and safe to repeat;
// merge.go says how they make one merge.

const (
	// offersOutlive is how much longer the quantities that a guest cart has offered
	// are noted than its claim lives, so that it can never be taken in again.
	offersOutlive = 7 * 24 * time.Hour

	// claimGrace is how long a note may stand without a claim before it is taken for
	// the trace of a request that died: longer than any request lives.
	claimGrace = 5 * time.Minute
)

// waiting is what lies under a guest's token when a customer brings it along.
type waiting struct {
	claimed  bool    // an earlier request has begun to merge a cart
	applied  string  // fingerprint of the change under the key that was asked about; "" for none
	products []int64 // of the cart that lies there now
	bring
}

func (w waiting) any() bool { return w.claimed || w.cartID != "" }

// bring is what a guest's cart would add to a customer's.
type bring struct {
	cartID      string // "" for no cart
	lines, text int64
}

// cut is a guest's cart id as notes keep it: long enough to tell a customer's few
// notes apart, short enough to keep the cart small in Redis.
func (b bring) cut() string {
	if b.cartID == "" {
		return "-"
	}
	return b.cartID[:min(len(b.cartID), 10)]
}

// claimed is a guest's cart set aside for its new owner.
type claimed struct {
	cart   Cart
	again  bool    // an earlier request had claimed it; a newer cart may lie under the token
	note   string  // member of the note under which it was claimed; "" for none
	stamps []any   // member and ms, in turns
	keys   []any   // digest and value, in turns
	master *master // whose clock stamps and keys have
}

var (
	// errNothingToMerge says that no guest cart waits to be taken in.
	errNothingToMerge = errors.New("cart: nothing to merge")

	// errUnconfirmed says that not every replica has what apply did, so that the
	// guest's cart must stay set aside: a failover that loses the merged lines still
	// has the guest's cart.
	errUnconfirmed = errors.New("cart: merge not confirmed by every replica")

	// errCartFull says that the guest's cart does not fit into the customer's.
	errCartFull = errors.New("cart: no room for the guest's cart")

	// errCrowded says that too many merges into one cart are under way.
	errCrowded = errors.New("cart: too many merges under way")

	// errHangs says that a Redis did not answer in time a moment ago and was not
	// asked again.
	errHangs = errors.New("cart: the guest's Redis hangs")
)

// errOtherOwner says that another customer's claim on the same token comes first.
type errOtherOwner struct{ owner Ref }

func (e *errOtherOwner) Error() string { return "cart: claimed by another customer" }

// errGrown says that the guest's cart was replaced or has grown since room was reserved
// for it.
type errGrown struct{ bring }

func (e *errGrown) Error() string { return "cart: the guest's cart has changed" }

// intend reserves room for a guest's cart and notes, under a name of the caller's
// making, that it is about to come in.
func (r *Redis) intend(ctx context.Context, customer, guest Ref, note string, b bring) error {
	word, err := r.scripts.intend.run(ctx, r.client, repeatable, []string{customer.cartKey()},
		note, r.ttlOf(customer).Milliseconds(), guest.tokenDigest(), b.lines, b.text, b.cut(),
		mergedLines*r.limits.Lines, mergedLines*r.limits.CartText).Text()
	switch {
	case err != nil:
		return unavailable("intend merge", err)
	case word == "full":
		return errCartFull
	case word == "crowded":
		return errCrowded
	}
	return nil
}

// claim sets the guest's cart aside under a note. Without one, it only finds again
// what this customer had claimed before. It waits for replicas, for a bounded time, so
// that a failover does not give the token to another customer; when they do not confirm,
// it goes on: the cart would otherwise be out of everybody's sight.
func (r *Redis) claim(ctx context.Context, customer, guest Ref, note string, b bring, now time.Time) (claimed, error) {
	client, m, err := r.masterOf(ctx, guest.cartKey())
	if err != nil {
		return claimed{}, unavailable("find guest's master", err)
	}
	deadline, err := m.deadline(ctx, client)
	if err != nil {
		return claimed{}, unavailable("ask time", err)
	}
	cmd, _ := r.runReplicated(ctx, r.scripts.claim, claimWait, repeatable,
		[]string{guest.cartKey(), guest.claimedKey(), guest.keysKey()},
		customer.tag, r.ttl.Customer.Milliseconds(), note, deadline, b.cut(), b.lines, b.text)
	reply, err := cmd.Slice()
	if err != nil {
		return claimed{}, unavailable("claim guest cart", err)
	}
	switch reply[0].(string) {
	case "nothing":
		return claimed{}, errNothingToMerge
	case "late":
		return claimed{}, unavailable("claim guest cart", errLate)
	case "other":
		return claimed{}, &errOtherOwner{owner: Ref{tag: reply[1].(string)}}
	case "grown":
		return claimed{}, &errGrown{bring{cartID: reply[1].(string), lines: reply[2].(int64), text: reply[3].(int64)}}
	}
	flat := reply[2].([]any)
	cart, err := parseCart(flat, 0, now)
	return claimed{
		cart: cart, again: reply[0] == "again", note: reply[1].(string),
		stamps: stampsOf(flat), keys: reply[3].([]any), master: m,
	}, err
}

func stampsOf(flat []any) []any {
	var stamps []any
	for i := 0; i+1 < len(flat); i += 2 {
		if member := flat[i].(string); strings.HasPrefix(member, "r") {
			stamps = append(stamps, member, flat[i+1])
		}
	}
	return stamps
}

// apply takes the lines in, each within its bounds (see mergeBounds), and reports what it
// did now; nil when it was done before. With errUnconfirmed it is done, but a failover
// could still lose it.
func (r *Redis) apply(ctx context.Context, customer Ref, c claimed, s Strategy, bound map[LineID]bounds, newID string) (*MergeReport, error) {
	client, m, err := r.masterOf(ctx, customer.cartKey())
	if err != nil {
		return nil, unavailable("find master", err)
	}
	shift, err := m.aheadOf(ctx, client, c.master)
	if err != nil {
		return nil, unavailable("ask time", err)
	}
	args := []any{
		r.ttlOf(customer).Milliseconds(), (r.ttl.Customer + offersOutlive).Milliseconds(), newID, string(s),
		c.cart.Coupon, bring{cartID: c.cart.ID}.cut(), shift, len(c.cart.Lines),
	}
	for _, l := range c.cart.Lines {
		b := bound[l.ID]
		args = append(args, string(l.ID), l.Quantity, int64(l.AddedPrice),
			encodeFields(l.Fields), l.Notice, b.stock, b.most)
	}
	args = append(append(append(args, len(c.stamps)/2), c.stamps...), c.keys...)
	cmd, copies := r.runReplicated(ctx, r.scripts.apply, replicaWait, repeatable,
		[]string{customer.cartKey(), customer.offeredKey(c.cart.ID), customer.keysKey()}, args...)
	reply, err := cmd.Slice()
	if err != nil {
		return nil, unavailable("apply merge", err)
	}
	if !copies.survivesFailover() {
		err = errUnconfirmed
	}
	return mergeReport(reply, bound), err
}

// mergeReport reads what apply.lua did; nil for nothing.
func mergeReport(reply []any, bound map[LineID]bounds) *MergeReport {
	if reply[0].(int64) == 0 && reply[2].(int64) == 0 {
		return nil
	}
	report := &MergeReport{Lines: reply[0].(int64)}
	cut := reply[1].([]any)
	for i := 0; i+2 < len(cut); i += 3 {
		a := Adjustment{Line: LineID(cut[i].(string)), Requested: cut[i+1].(int64), Kept: cut[i+2].(int64)}
		a.Code = CodeInsufficientStock
		if a.Kept >= bound[a.Line].most {
			a.Code = CodeAboveMaxQuantity
		}
		report.Adjusted = append(report.Adjusted, a)
	}
	return report
}

func (r *Redis) finish(ctx context.Context, customer, guest Ref, guestCartID string) error {
	err := r.scripts.finish.run(ctx, r.client, repeatable,
		[]string{guest.claimedKey()}, customer.tag, guestCartID).Err()
	if err != nil {
		return unavailable("finish merge", err)
	}
	return nil
}

// forget drops notes that are at least as old as age.
func (r *Redis) forget(ctx context.Context, customer Ref, age time.Duration, notes ...string) error {
	args := []any{r.ttlOf(customer).Milliseconds(), int64(age.Seconds())}
	for _, note := range notes {
		args = append(args, note)
	}
	if err := r.scripts.forget.run(ctx, r.client, repeatable, []string{customer.cartKey()}, args...).Err(); err != nil {
		return unavailable("forget merge", err)
	}
	return nil
}

// guestQuestion asks what lies under a guest's token, as part of a pipeline.
type guestQuestion struct {
	members *redis.MapStringStringCmd
	claimed *redis.IntCmd
	key     *redis.StringCmd // nil when no key was asked about
}

// askGuest also asks about an idempotency key, by its digest; "" for none.
func askGuest(ctx context.Context, pipe redis.Pipeliner, guest Ref, key string) guestQuestion {
	q := guestQuestion{members: pipe.HGetAll(ctx, guest.cartKey()), claimed: pipe.Exists(ctx, guest.claimedKey())}
	if key != "" {
		q.key = pipe.HGet(ctx, guest.keysKey(), key)
	}
	return q
}

func (q guestQuestion) answer(now time.Time) (waiting, error) {
	if err := errors.Join(q.members.Err(), q.claimed.Err()); err != nil {
		return waiting{}, unavailable("look for guest cart", err)
	}
	flat := make([]any, 0, 2*len(q.members.Val()))
	for member, value := range q.members.Val() {
		flat = append(flat, member, value)
	}
	cart, err := parseCart(flat, 0, now)
	if err != nil {
		return waiting{}, unavailable("look for guest cart", err)
	}
	w := waiting{
		claimed:  q.claimed.Val() > 0,
		products: cart.ProductIDs(),
		bring:    bring{cartID: cart.ID, lines: int64(len(cart.Lines)), text: cart.textSize()},
	}
	if q.key != nil {
		w.applied, err = fingerprintOf(q.key)
	}
	return w, err
}

// fingerprintOf is that of the change applied under a key, "" for none.
func fingerprintOf(key *redis.StringCmd) (string, error) {
	value, err := key.Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", unavailable("look for key in guest's cart", err)
	}
	_, fingerprint, _ := strings.Cut(value, " ")
	return fingerprint, nil
}

// guestHolds looks for what waits to be merged, and for an idempotency key by its
// digest; "" for none.
func (r *Redis) guestHolds(ctx context.Context, customer, guest Ref, key string, now time.Time) (waiting, error) {
	var w waiting
	err := r.besides(ctx, customer, guest, func() (err error) {
		pipe := r.client.Pipeline()
		question := askGuest(ctx, pipe, guest, key)
		_, _ = pipe.Exec(ctx)
		w, err = question.answer(now)
		return err
	})
	return w, err
}

// besides asks a guest's Redis something that a customer's request can go without, and
// does not ask at all for a while after it did not answer in time. Where both carts lie
// on one master, that one is always asked.
func (r *Redis) besides(ctx context.Context, customer, guest Ref, ask func() error) error {
	_, hers, err := r.masterOf(ctx, customer.cartKey())
	if err != nil {
		return unavailable("find master", err)
	}
	_, its, err := r.masterOf(ctx, guest.cartKey())
	if err != nil {
		return unavailable("find guest's master", err)
	}
	if hers == its {
		return ask()
	}
	if its.hangs() {
		return unavailable("look for guest cart", errHangs)
	}
	err = ask()
	if timedOut(err) {
		its.noteHang()
	}
	return err
}

func timedOut(err error) bool {
	failed, isNet := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || isNet && failed.Timeout()
}

// loadBoth reads a customer's cart and asks after the guest's in one round trip, or,
// where they lie on two masters, in two at once. quick bounds the guest's: when that
// cannot be asked in time, nothing waits, and the merge is left to the next request.
func (r *Redis) loadBoth(ctx, quick context.Context, customer, guest Ref, now time.Time) (Cart, waiting, error) {
	if r.clustered() {
		asked := make(chan waiting, 1)
		go func() {
			w, _ := r.guestHolds(quick, customer, guest, "", now)
			asked <- w
		}()
		cart, err := r.Load(ctx, customer, now)
		return cart, <-asked, err
	}
	pipe := r.client.Pipeline()
	read := pipe.EvalSha(ctx, r.scripts.read.sha, []string{customer.cartKey()}, r.ttlOf(customer).Milliseconds())
	question := askGuest(ctx, pipe, guest, "")
	_, _ = pipe.Exec(ctx)
	w, _ := question.answer(now)
	if redis.HasErrorPrefix(read.Err(), "NOSCRIPT") { // a pipeline does not send the script itself
		cart, err := r.Load(ctx, customer, now)
		return cart, w, err
	}
	cart, err := readCart(read, now)
	return cart, w, err
}

// appliedUnder asks a guest's Redis for the fingerprint of the change that was applied
// under an idempotency key, given by its digest; "" for none.
func (r *Redis) appliedUnder(ctx context.Context, customer, guest Ref, key string) (fingerprint string, err error) {
	err = r.besides(ctx, customer, guest, func() error {
		fingerprint, err = fingerprintOf(r.client.HGet(ctx, guest.keysKey(), key))
		return err
	})
	return fingerprint, err
}
