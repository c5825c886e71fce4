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
)

// Merge on login. The guest's and the customer's cart lie in different slots of a
// cluster, so no script sees both. Instead there are steps, each atomic in its own
// slot and each safe to repeat:
//
//	intend  customer's slot  note which guest cart is about to come in
//	claim   guest's slot     set the guest's cart aside for this customer
//	apply   customer's slot  take its lines in, and note how many were offered
//	finish  guest's slot     drop what was set aside
//	forget  customer's slot  drop the note
//
// Whoever dies between two of them leaves a state from which the next request of
// the customer, or of anyone who logs in with that token, gets to the same end:
// the notes that apply leaves are tied to the guest cart's own random id, so no
// line is counted twice, and the claimed cart is dropped only after it came in.

// Strategy says what becomes of a line that both carts hold.
type Strategy string

// The strategies.
const (
	Sum          Strategy = "sum"
	Max          Strategy = "max"
	KeepGuest    Strategy = "guest"
	KeepCustomer Strategy = "customer"
)

// ParseStrategy reads a setting.
func ParseStrategy(s string) (Strategy, error) {
	switch st := Strategy(s); st {
	case Sum, Max, KeepGuest, KeepCustomer:
		return st, nil
	}
	return "", fmt.Errorf("%q is none of sum, max, guest, customer", s)
}

// MergeReport tells a shopper what a merge did.
type MergeReport struct {
	Lines    int64 // lines that came from the guest's cart
	Adjusted []Adjustment
}

// Adjustment is a line whose quantity was cut to what may be bought.
type Adjustment struct {
	Line      LineID
	Requested int64
	Kept      int64
	Code      Code
}

const (
	// notesOutlive is how much longer the notes of a merge live than the guest cart
	// they are about, so that it can never be taken in again.
	notesOutlive = 7 * 24 * time.Hour

	// claimGrace is how long a note may stand without a claim before it is taken for
	// the trace of a request that died: longer than any request lives.
	claimGrace = 30 * time.Second
)

// note is what a customer's cart says of a merge under way: the guest's tag, and
// when it was written, as "<tag> <ms>".
type note string

// notes are all notes of a customer's cart, one for each guest's cart that is on
// its way: each of a customer's devices may bring one along.
type notes []note

func parseNotes(s string) notes {
	words := strings.Fields(s)
	list := make(notes, 0, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		list = append(list, note(words[i]+" "+words[i+1]))
	}
	return list
}

// String is how the cart keeps them.
func (n notes) String() string {
	var b strings.Builder
	for i, note := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(note))
	}
	return b.String()
}

func (n note) guest() Ref {
	tag, _, _ := strings.Cut(string(n), " ")
	return Ref{tag: tag, guest: true}
}

func (n note) olderThan(d time.Duration, now time.Time) bool {
	_, ms, _ := strings.Cut(string(n), " ")
	at, _ := strconv.ParseInt(ms, 10, 64)
	return now.Sub(time.UnixMilli(at)) > d
}

// claimed is a guest's cart set aside for its new owner.
type claimed struct {
	cart    Cart
	again   bool  // an earlier request had claimed it; a newer cart may lie under the token
	replays []any // replay and expiry, in turns, as Redis gave them
}

// errOtherOwner says that another customer's claim on the same token comes first.
type errOtherOwner struct{ owner Ref }

func (e *errOtherOwner) Error() string { return "cart: claimed by another customer" }

// errUnconfirmed says that not every replica has what apply did, so that the guest's
// cart must stay set aside: a failover that loses the one still has the other.
var errUnconfirmed = errors.New("cart: merge not confirmed by every replica")

// errNothingToMerge says that no guest cart waits to be taken in.
var errNothingToMerge = errors.New("cart: nothing to merge")

func (r *Redis) intend(ctx context.Context, customer, guest Ref, now time.Time) (note, error) {
	text, err := r.scripts.intend.run(ctx, r.client, repeatable,
		[]string{customer.cartKey()}, guest.tag, now.UnixMilli(), r.ttlOf(customer).Milliseconds()).Text()
	if err != nil {
		return "", unavailable("intend merge", err)
	}
	return note(text), nil
}

// claim sets the guest's cart aside. Unless begin is set, it only finds again what
// this customer had claimed before.
func (r *Redis) claim(ctx context.Context, customer, guest Ref, begin bool, now time.Time) (claimed, error) {
	reply, err := r.scripts.claim.run(ctx, r.client, repeatable,
		[]string{guest.cartKey(), guest.claimedKey(), guest.replaysKey()},
		customer.tag, r.ttl.Guest.Milliseconds(), begin, now.UnixMilli()).Slice()
	if err != nil {
		return claimed{}, unavailable("claim guest cart", err)
	}
	switch reply[0].(string) {
	case "nothing":
		return claimed{}, errNothingToMerge
	case "other":
		return claimed{}, &errOtherOwner{owner: Ref{tag: reply[1].(string)}}
	}
	cart, err := parseCart(reply[1].([]any), 0, now)
	return claimed{cart: cart, again: reply[0] == "again", replays: reply[2].([]any)}, err
}

// apply takes the lines in, each within its bounds (see boundsOf; stock 0 leaves a
// line uncut), and reports what it did now; nil when it was done before. With
// errUnconfirmed it is done, but a failover could still lose it.
func (r *Redis) apply(ctx context.Context, customer Ref, c claimed, s Strategy, bound map[LineID]bounds, newID string, now time.Time) (*MergeReport, error) {
	args := []any{
		now.UnixMilli(), r.ttlOf(customer).Milliseconds(), (r.ttl.Guest + notesOutlive).Milliseconds(),
		newID, string(s), c.cart.Coupon, len(c.cart.Lines),
	}
	for _, l := range c.cart.Lines {
		b := bound[l.ID]
		args = append(args, string(l.ID), l.Quantity, int64(l.AddedPrice),
			encodeFields(l.Fields), l.Notice, b.stock, b.most)
	}
	args = append(args, c.replays...)
	cmd, copies := r.scripts.apply.runReplicated(ctx, r.client, r.laggards, repeatable,
		[]string{customer.cartKey(), customer.mergedKey(c.cart.ID), customer.replaysKey()}, args...)
	reply, err := cmd.Slice()
	if err != nil {
		return nil, unavailable("apply merge", err)
	}
	if !copies.safe() {
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

func (r *Redis) forget(ctx context.Context, customer Ref, n note) error {
	err := r.scripts.forget.run(ctx, r.client, repeatable,
		[]string{customer.cartKey()}, string(n), r.ttlOf(customer).Milliseconds()).Err()
	if err != nil {
		return unavailable("forget merge", err)
	}
	return nil
}

// waiting is what lies under a guest's token when a customer brings it along.
type waiting struct {
	any      bool    // a cart, or an unfinished claim on one
	products []int64 // of the cart, with repeats
}

// guestHolds looks for what waits to be merged.
func (r *Redis) guestHolds(ctx context.Context, guest Ref) (waiting, error) {
	pipe := r.client.Pipeline()
	q := askGuest(ctx, pipe, guest)
	_, _ = pipe.Exec(ctx)
	return q.answer()
}

// guestQuestion is guestHolds as part of a larger pipeline.
type guestQuestion struct {
	lines   *redis.MapStringStringCmd
	claimed *redis.IntCmd
}

func askGuest(ctx context.Context, pipe redis.Pipeliner, guest Ref) guestQuestion {
	return guestQuestion{lines: pipe.HGetAll(ctx, guest.cartKey()), claimed: pipe.Exists(ctx, guest.claimedKey())}
}

func (q guestQuestion) answer() (waiting, error) {
	if err := errors.Join(q.lines.Err(), q.claimed.Err()); err != nil {
		return waiting{}, unavailable("look for guest cart", err)
	}
	w := waiting{any: len(q.lines.Val()) > 0 || q.claimed.Val() > 0}
	for member := range q.lines.Val() {
		if id, ok := parseLineID(member); ok {
			w.products = append(w.products, id.Product())
		}
	}
	return w, nil
}

// loadBoth reads a customer's cart and asks after the guest's in one round trip
// (on a cluster, two at once). When only the guest's cannot be asked, nothing
// waits: that merge is left to the next request.
func (r *Redis) loadBoth(ctx context.Context, customer, guest Ref, now time.Time) (Cart, waiting, error) {
	pipe := r.client.Pipeline()
	read := pipe.EvalSha(ctx, r.scripts.read.sha, []string{customer.cartKey()}, r.ttlOf(customer).Milliseconds())
	question := askGuest(ctx, pipe, guest)
	_, _ = pipe.Exec(ctx)
	w, _ := question.answer()
	reply, err := read.Slice()
	if err != nil { // a pipeline does not send a script that Redis lacks again
		c, err := r.Load(ctx, customer, now)
		return c, w, err
	}
	c, err := parseCart(reply[0].([]any), reply[1].(int64), now)
	if err != nil {
		return Cart{}, w, unavailable("read cart", err)
	}
	return c, w, nil
}

// merge takes what lies under a guest's token into the customer's cart. nil when
// there was nothing. The caller's request goes on whatever comes of it: a merge
// that cannot be driven now is driven by a later request.
func (s *Service) merge(ctx context.Context, sh Shopper, w waiting) (*MergeReport, error) {
	// Asked before anything is claimed: with the catalogue out of reach nothing moves.
	if _, err := s.catalog.Products(ctx, sh.Store.ID, w.products); err != nil {
		return nil, unavailable("products of guest cart", err)
	}
	var total *MergeReport
	for range mergeRounds {
		n, err := s.redis.intend(ctx, sh.ref, sh.guest, s.now())
		if err != nil {
			return total, err
		}
		report, again, err := s.drive(ctx, sh.Store.ID, sh.ref, n, true)
		total = total.plus(report)
		if errors.Is(err, errNothingToMerge) {
			return total, s.redis.forget(ctx, sh.ref, n)
		}
		if err != nil || !again {
			return total, err
		}
	}
	return total, nil
}

// mergeRounds bounds how many carts one request takes in: one that an earlier
// request had claimed, what was added since, and the same once more where several
// requests merge at once.
const mergeRounds = 3

// resume drives the merges that earlier requests of this customer left unfinished.
// It never begins one: a note without a claim is dropped once it is old.
func (s *Service) resume(ctx context.Context, sh Shopper, unfinished notes) (*MergeReport, error) {
	var total *MergeReport
	var failed error
	for _, n := range unfinished {
		report, _, err := s.drive(ctx, sh.Store.ID, sh.ref, n, false)
		total = total.plus(report)
		if errors.Is(err, errNothingToMerge) {
			err = nil
			if n.olderThan(claimGrace, s.now()) {
				err = s.redis.forget(ctx, sh.ref, n)
			}
		}
		failed = errors.Join(failed, err)
	}
	return total, failed
}

// drive takes one merge from its claim to its end. again says that the claim was
// an earlier one, so that a newer cart may lie under the token.
func (s *Service) drive(ctx context.Context, store int64, customer Ref, n note, begin bool) (report *MergeReport, again bool, err error) {
	c, err := s.redis.claim(ctx, customer, n.guest(), begin, s.now())
	var other *errOtherOwner
	if errors.As(err, &other) {
		if _, _, err := s.drive(ctx, store, other.owner, n, false); err != nil && !errors.Is(err, errNothingToMerge) {
			return report, false, err
		}
		c, err = s.redis.claim(ctx, customer, n.guest(), begin, s.now())
	}
	if err != nil {
		return report, false, err
	}
	bound, err := s.mergeBounds(ctx, store, c.cart)
	if err != nil {
		return report, false, err
	}
	report, err = s.redis.apply(ctx, customer, c, s.strategy, bound, s.newCartID(), s.now())
	if err != nil {
		return report, false, err
	}
	if err := s.redis.finish(ctx, customer, n.guest(), c.cart.ID); err != nil {
		return report, false, err
	}
	return report, c.again, s.redis.forget(ctx, customer, n)
}

// mergeBounds says how far each line of a guest's cart may grow. A line that could
// not be bought at all is not cut: it moves as it is and carries its issue.
func (s *Service) mergeBounds(ctx context.Context, store int64, guest Cart) (map[LineID]bounds, error) {
	products, err := s.catalog.Products(ctx, store, guest.ProductIDs())
	if err != nil {
		return nil, unavailable("products of guest cart", err)
	}
	bound := make(map[LineID]bounds, len(guest.Lines))
	for _, l := range guest.Lines {
		p := products[l.ID.Product()]
		b := boundsOf(p, s.limits)
		if p == nil || !p.Active {
			b.stock = 0
		}
		bound[l.ID] = b
	}
	return bound, nil
}

// plus adds reports up; nil is one of nothing.
func (m *MergeReport) plus(other *MergeReport) *MergeReport {
	if m == nil || other == nil {
		return cmp.Or(m, other)
	}
	return &MergeReport{Lines: m.Lines + other.Lines, Adjusted: slices.Concat(m.Adjusted, other.Adjusted)}
}

// beside puts the report on a refusal that the same call came to, so that it is
// told all the same; errors of other kinds stay as they are.
func (m *MergeReport) beside(err error) error {
	var e *Error
	if m == nil || !errors.As(err, &e) {
		return err
	}
	told := *e
	told.merged = m.plus(e.merged)
	return &told
}
