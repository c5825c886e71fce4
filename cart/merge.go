package cart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Merge on login. The guest's and the customer's cart lie in different slots of a
// cluster, so no script sees both. Instead there are steps, each atomic in its own
// slot and each safe to repeat:
//
//	intend  customer's slot  note which guest cart is about to come in, reserve room
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
	Code     Code // cart_full when a guest's cart waits until there is room for it; "" for none
}

// Adjustment is a line whose quantity was cut to what may be bought.
type Adjustment struct {
	Line      LineID
	Requested int64
	Kept      int64
	Code      Code
}

// merge takes what lies under a guest's token into the customer's cart. The report is
// nil when there was nothing. The caller's request goes on after an error: a merge that
// cannot be driven now is driven by a later request.
func (s *Service) merge(ctx context.Context, sh Shopper, w waiting) (*MergeReport, error) {
	var total *MergeReport
	if w.claimed {
		report, _, err := s.drive(ctx, sh.Store.ID, sh.ref, sh.guest, "", bring{})
		total = report
		if err != nil && !errors.Is(err, errNothingToMerge) {
			return total, err
		}
	}
	// Asked before anything is claimed: with the catalogue out of reach nothing moves.
	if _, err := s.catalog.Products(ctx, sh.Store.ID, w.products); err != nil {
		return total, unavailable("products of guest cart", err)
	}
	for round := 0; w.cartID != "" && round < mergeRounds; round++ {
		report, again, err := s.mergeCart(ctx, sh, &w.bring)
		total = total.plus(report)
		if err != nil || !again {
			return total, err
		}
	}
	return total, nil
}

// mergeRounds bounds how many carts one request takes in, and how often it asks again
// for room, where other requests use the same token at the same time.
const mergeRounds = 4

// mergeCart makes room for a guest's cart and takes it in. again says that it has to be
// tried again: another request had claimed an earlier cart, or this one has grown.
func (s *Service) mergeCart(ctx context.Context, sh Shopper, b *bring) (_ *MergeReport, again bool, err error) {
	own := "m" + s.newCartID()[:10]
	if err := s.redis.intend(ctx, sh.ref, sh.guest, own, *b); err != nil {
		if errors.Is(err, errCartFull) {
			return &MergeReport{Code: CodeCartFull}, false, err
		}
		return nil, false, err
	}
	report, again, err := s.drive(ctx, sh.Store.ID, sh.ref, sh.guest, own, *b)
	var grown *errGrown
	switch {
	case errors.As(err, &grown):
		*b = grown.bring
		return nil, true, s.redis.forget(ctx, sh.ref, 0, own)
	case errors.Is(err, errNothingToMerge):
		return nil, false, s.redis.forget(ctx, sh.ref, 0, own)
	}
	return report, again, err
}

// resume drives the merges that earlier requests of this customer left unfinished. It
// never begins one: a note without a claim is dropped once it is old. It returns the
// notes whose merges still wait.
func (s *Service) resume(ctx context.Context, sh Shopper, unfinished notes) (*MergeReport, notes, error) {
	var total *MergeReport
	var waiting notes
	var failed error
	results := map[string]error{}
	for _, n := range unfinished {
		err, done := results[n.guest]
		if !done {
			var report *MergeReport
			report, _, err = s.drive(ctx, sh.Store.ID, sh.ref, sh.ref.guestBeside(n.guest), "", bring{})
			total = total.plus(report)
			results[n.guest] = err
		}
		if errors.Is(err, errNothingToMerge) {
			err = s.forgetOld(ctx, sh, n)
		} else if err != nil {
			waiting = append(waiting, n)
		}
		failed = errors.Join(failed, err)
	}
	return total, waiting, failed
}

// forgetOld drops a note that nothing was claimed under. Redis judges its age; the
// clock here only saves asking.
func (s *Service) forgetOld(ctx context.Context, sh Shopper, n note) error {
	if s.now().Sub(n.at) < claimGrace {
		return nil
	}
	return s.redis.forget(ctx, sh.ref, claimGrace, n.member)
}

// drive takes one merge from its claim to its end. With a note of the caller's it may
// claim the guest's cart, without one it only takes up an earlier claim. again says that
// the claim was an earlier one, so that a newer cart may lie under the token.
func (s *Service) drive(ctx context.Context, store int64, customer, guest Ref, own string, b bring) (report *MergeReport, again bool, err error) {
	c, err := s.claim(ctx, customer, guest, own, b)
	var other *errOtherOwner
	if errors.As(err, &other) {
		if _, _, err := s.drive(ctx, store, other.owner, guest, "", bring{}); err != nil && !errors.Is(err, errNothingToMerge) {
			return nil, false, err
		}
		c, err = s.claim(ctx, customer, guest, own, b)
	}
	if err != nil {
		return nil, false, err
	}
	bound, err := s.mergeBounds(ctx, store, c.cart)
	if err != nil {
		return nil, false, err
	}
	report, err = s.redis.apply(ctx, customer, c, s.strategy, bound, s.newCartID())
	if err != nil {
		return report, false, err
	}
	if err := s.redis.finish(ctx, customer, guest, c.cart.ID); err != nil {
		return report, false, err
	}
	return report, c.again, s.redis.forget(ctx, customer, 0, c.note, own)
}

// claim asks the guest's Redis, which may hang when the customer's does not, for no
// longer than one request may wait.
func (s *Service) claim(ctx context.Context, customer, guest Ref, own string, b bring) (c claimed, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.budget)
	defer cancel()
	err = s.redis.besides(ctx, customer, guest, func() error {
		c, err = s.redis.claim(ctx, customer, guest, own, b, s.now())
		return err
	})
	return c, err
}

// mergeBounds says how far each line of a guest's cart may grow. A line that could
// not be bought at all is bounded by the service's own limit alone: it moves as it is
// and carries its issue.
func (s *Service) mergeBounds(ctx context.Context, store int64, guest Cart) (map[LineID]bounds, error) {
	products, err := s.catalog.Products(ctx, store, guest.ProductIDs())
	if err != nil {
		return nil, unavailable("products of guest cart", err)
	}
	bound := make(map[LineID]bounds, len(guest.Lines))
	for _, l := range guest.Lines {
		p := products[l.ID.Product()]
		b := boundsOf(p, s.limits)
		if p == nil || !p.Active || b.stock == 0 {
			b = bounds{stock: -1, most: s.limits.Quantity}
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
	return &MergeReport{
		Lines: m.Lines + other.Lines, Adjusted: slices.Concat(m.Adjusted, other.Adjusted), Code: cmp.Or(m.Code, other.Code),
	}
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
