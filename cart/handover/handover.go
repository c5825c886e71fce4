// Package handover moves a guest's cart to whoever redeems a code, by the steps of a merge: see "Handing over" in
// docs/design.md. The code names the cart and is stored nowhere. The code of a link has items instead.
package handover

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/transfer"
)

const codeLife = time.Hour

// Handovers has the calls that hand carts over.
type Handovers struct{ carts *service.Carts }

// New returns the calls that hand carts over.
func New(carts *service.Carts) *Handovers { return &Handovers{carts} }

// Offer offers the guest's cart of a visit. Errors: problem.GuestOnly, problem.CartEmpty; problem.NotFound
// without Config.Keys.
func (s *Handovers) Offer(ctx context.Context, v *service.Visit) (service.Link, error) {
	switch {
	case s.carts.Keys == nil:
		return service.Link{}, cart.ErrNoCode
	case v.Customer() != "":
		return service.Link{}, errGuestOnly
	}
	stored, err := s.carts.Load(ctx, v)
	if err == nil && len(stored.Lines) == 0 {
		err = cart.ErrEmpty
	}
	if err != nil {
		return service.Link{}, err
	}
	return s.OfferOf(v, stored.Cart, false), nil
}

// OfferOf offers a guest's cart as it was read, which is not empty, without I/O. agent says that the
// visit is an agent's, whose id opens an empty cart afterwards. It needs Config.Keys.
func (s *Handovers) OfferOf(v *service.Visit, c cart.Cart, agent bool) service.Link {
	ends := s.carts.Now().Add(codeLife).Truncate(time.Second)
	text := fmt.Sprintf("%s %s %d %t", v.Ref().TokenDigest(), c.Tag(), ends.Unix(), agent)
	return service.LinkTo(v, "handover", s.carts.Keys.Seal(handoverPurpose(v), []byte(text)), ends)
}

func handoverPurpose(v *service.Visit) string { return "handover " + strconv.FormatInt(v.Store.ID, 10) }

type handedOver struct {
	from    redisstore.Ref
	cartID  string // never another cart of that token
	version string // the cart's Tag at that time
	agent   bool
}

// opened returns what a code names. ok is false if it is expired, tampered with, or of another store.
func (s *Handovers) opened(v *service.Visit, code string) (h handedOver, ok bool) {
	text, ok := s.carts.Keys.Open(handoverPurpose(v), code)
	if !ok {
		return h, false
	}
	var digest string
	var ends int64
	_, err := fmt.Sscan(string(text), &digest, &h.version, &ends, &h.agent)
	h.cartID, _, _ = strings.Cut(h.version, ".")
	h.from = redisstore.GuestRefOf(v.Store.ID, digest)
	return h, err == nil && s.carts.Now().Before(time.Unix(ends, 0))
}

// Preview returns the cart of a code; problem.NotFound if that cannot be redeemed. changed means that the cart
// is no longer as it was offered. Then do not show its texts: they may have been typed after the code was given away.
func (s *Handovers) Preview(ctx context.Context, v *service.Visit, code string) (offered price.Priced, changed bool, err error) {
	if items, ok := s.openItems(v, code); ok {
		offered, err = s.previewItems(ctx, v, items, code)
		return offered, false, err
	}
	h, ok := s.opened(v, code)
	if !ok {
		return price.Priced{}, false, cart.ErrNoCode
	}
	limited, done := v.Within(ctx)
	stored, err := s.carts.Redis.Load(limited, h.from)
	done()
	switch {
	case err != nil:
		return price.Priced{}, false, err
	case stored.ID != h.cartID:
		return price.Priced{}, false, cart.ErrNoCode
	}
	if changed = stored.Tag() != h.version; changed {
		stored.Cart = s.withHiddenIDs(stored.Cart)
	}
	offered, err = s.carts.PriceCart(ctx, v, stored.Cart)
	return offered, changed, err
}

// withHiddenIDs returns a copy of a cart. The IDs of lines with fields keep their form.
func (s *Handovers) withHiddenIDs(c cart.Cart) cart.Cart {
	hidden := s.carts.HiddenIDs(s.carts.Keys.Name(), c.ID)
	c.Lines = slices.Clone(c.Lines)
	for i, l := range c.Lines {
		if len(l.Fields) > 0 {
			c.Lines[i].ID = cart.LineID(l.ID.Item() + ".f" + hidden(l.ID))
		}
	}
	return c
}

// Redemption is a shopper's request to redeem a code.
type Redemption struct {
	Code      string
	Key       string // the Idempotency-Key, made by the redeemer: a retry has the same result
	IfMatch   string // as in Conditions, for the cart that the visit has
	KeepAgent bool   // an agent's id follows to a fresh token
}

// Redeem moves the cart or adds the items that a code offers to the visit's cart, or to a fresh token: see target. Afterwards
// the visit's cart and Token are those that hold the lines. Errors: problem.NotFound for a code that cannot be
// redeemed by this key, problem.VersionMismatch, problem.CartFull, problem.RateLimited, problem.InvalidParameter for a guessable key.
// After problem.Unavailable, a retry completes what was begun.
func (s *Handovers) Redeem(ctx context.Context, v *service.Visit, r Redemption) (service.Changed, error) {
	h, ok := s.opened(v, r.Code)
	items, addsItems := s.openItems(v, r.Code)
	switch {
	case !ok && !addsItems:
		return service.Changed{}, cart.ErrNoCode
	case auth.GuessableKey(r.Key): // whoever guesses it, and made the code, knows the fresh token
		return service.Changed{}, service.GuessableKey("Idempotency-Key")
	case addsItems:
		return s.redeemItems(ctx, v, items, r)
	}
	d := s.newRedemption(v, h, r)
	var refused *problem.Error
	err := s.carts.Observed(ctx, v, func(ctx context.Context) error {
		err := s.redeem(ctx, v, d)
		if p, ok := errors.AsType[*problem.Error](err); ok && p.Code != problem.Unavailable {
			refused, err = p, nil
		}
		return err
	})
	switch {
	case refused != nil:
		return service.Changed{}, refused
	case errors.Is(err, transfer.ErrNoRoom):
		return service.Changed{}, errNoRoomToRedeem
	case err != nil:
		return service.Changed{}, cart.AsUnavailable("redeem hand-over", err)
	}
	if err := s.enter(ctx, v, d); err != nil {
		return service.Changed{}, err
	}
	changed, err := s.carts.AfterTransfer(ctx, v, d.to)
	changed.Replayed = d.replayed
	return changed, err
}

// maxMerges is how many merges one request makes for a code. An earlier cart of its token, and merges into it, come first.
const maxMerges = 8

type redeeming struct {
	handedOver
	keepAgent bool
	on        service.Conditions // for the visit's own cart
	note      string             // under which every try of this key merges
	fresh     redisstore.Ref     // the token that only this key leads to
	token     auth.CartToken     // of fresh

	to       redisstore.Ref // the cart that has got the lines; zero while it is not known
	replayed bool           // an earlier request had moved them
}

func (s *Handovers) newRedemption(v *service.Visit, h handedOver, r Redemption) *redeeming {
	derive := func(label string) string {
		sum, _ := s.carts.Keys.Derive(r.Code[:len(s.carts.Keys.Name())], label, r.Code, r.Key) // the key that has opened the code
		return base64.RawURLEncoding.EncodeToString(sum[:16])
	}
	token := auth.CartToken(derive("handover token"))
	return &redeeming{
		handedOver: h, keepAgent: r.KeepAgent, on: service.Conditions{IfMatch: r.IfMatch}, note: transfer.HandoverNote + derive("handover note")[:10],
		fresh: redisstore.GuestRef(v.Store.ID, token), token: token,
	}
}

// redeem moves the lines, unless an earlier try has. Each round finds out how far the hand-over is.
func (s *Handovers) redeem(ctx context.Context, v *service.Visit, d *redeeming) error {
	for round := range maxMerges {
		done, err := s.redeemRound(ctx, v, d)
		if done {
			d.replayed = round == 0
		}
		passing := errors.Is(err, redisstore.ErrUnconfirmed) || errors.Is(err, transfer.ErrMerging)
		if done || err != nil && !passing {
			return err
		}
	}
	return cart.Unavailable("redeem hand-over", errors.New("handover: other requests kept changing the cart"))
}

// redeemRound makes the next merge that the hand-over needs. done means that it needs none.
func (s *Handovers) redeemRound(ctx context.Context, v *service.Visit, d *redeeming) (done bool, err error) {
	var g redisstore.GuestCart
	var claim redisstore.Claim
	err = s.carts.Step(ctx, func(ctx context.Context) error {
		// First the source: what leaves it afterwards has arrived by then, or is claimed.
		if g, err = s.carts.Redis.FindGuest(ctx, v.Ref(), d.from, ""); err == nil && g.Claimed {
			claim, err = s.carts.Redis.ClaimOn(ctx, d.from)
		}
		if err == nil {
			d.to, err = s.carts.Redis.Redeemed(ctx, d.cartID, d.note, d.owners(v)...)
		}
		return err
	})
	known, ours := d.to != redisstore.Ref{}, claim.CartID == d.cartID && claim.Note == d.note
	switch {
	case err != nil:
		return false, err
	case ours:
		return true, s.resumeRedemption(ctx, v, d, claim.Owner)
	case claim.CartID == d.cartID:
		return false, cart.ErrNoCode
	case g.Claimed && claim == redisstore.Claim{}: // it has just ended
		return false, nil
	case g.Claimed: // an earlier cart of the token, which comes first
		return false, s.carts.CompleteClaimed(ctx, v, claim.Owner, d.from)
	case g.Needs.CartID == d.cartID: // also if a failover has lost the claim
		return false, s.redeemInto(ctx, v, d, g)
	case known:
		return true, nil
	}
	return false, cart.ErrNoCode
}

// resumeRedemption brings the lines that an earlier try of this key has claimed to the owner that it chose.
func (s *Handovers) resumeRedemption(ctx context.Context, v *service.Visit, d *redeeming, owner redisstore.Ref) error {
	err := s.carts.CompleteClaimed(ctx, v, owner, d.from)
	arrived := d.to == owner || errors.Is(err, redisstore.ErrUnconfirmed)
	if err != nil && !arrived {
		return err
	}
	d.to = owner
	if !slices.Contains(d.owners(v), owner) {
		return cart.ErrNoCode
	}
	return nil
}

// owners are the carts that an earlier try of this shopper can have chosen.
func (d *redeeming) owners(v *service.Visit) []redisstore.Ref {
	return slices.DeleteFunc([]redisstore.Ref{d.fresh, v.Ref(), v.Guest()}, func(r redisstore.Ref) bool { return r == redisstore.Ref{} })
}

func (s *Handovers) redeemInto(ctx context.Context, v *service.Visit, d *redeeming, g redisstore.GuestCart) error {
	to := d.to
	if (to == redisstore.Ref{}) {
		var err error
		if to, err = s.target(ctx, v, d); err != nil {
			return err
		}
		if to == d.fresh && s.carts.RefuseCreation(v, 0) != nil {
			return s.carts.TooManyCarts(v)
		}
	}
	g, err := s.carts.Ready(ctx, v, d.from, g)
	if err != nil || g.Needs.CartID != d.cartID {
		return err
	}
	m := service.Merging{Owner: to, Guest: d.from, Note: d.note, Needs: g.Needs}
	if (d.to == redisstore.Ref{}) { // no part of it has arrived
		m.On = d.on
	}
	if d.agent {
		var follows redisstore.Ref
		if d.keepAgent && to == d.fresh {
			follows = to
		}
		m.Moved = redisstore.MovedTo(follows, s.carts.NewName(8))
	}
	_, err = s.carts.MergeCart(ctx, v, &m)
	if version, is := errors.AsType[*redisstore.VersionError](err); is {
		return s.carts.VersionMismatch(ctx, v, version.Cart)
	}
	if to == d.fresh && (err == nil || errors.Is(err, redisstore.ErrUnconfirmed)) {
		s.carts.Creation.Use(ctx, v.Client())
	}
	return err
}

// target chooses the cart for the lines: the customer's own, or that of the visit's token if it is not
// empty, otherwise that of a fresh token, which whoever made the code does not know.
func (s *Handovers) target(ctx context.Context, v *service.Visit, d *redeeming) (redisstore.Ref, error) {
	if v.Customer() != "" {
		return v.Ref(), nil
	}
	if !v.Fresh && v.Ref() != d.from {
		stored, err := s.carts.Load(ctx, v)
		if err != nil || len(stored.Lines) > 0 {
			return v.Ref(), err
		}
	}
	return d.fresh, nil
}

// enter makes the cart with the lines the visit's. If an earlier try was a guest's and this one is a
// customer's, the guest's cart is merged, as on any login.
func (s *Handovers) enter(ctx context.Context, v *service.Visit, d *redeeming) error {
	switch {
	case d.to == v.Ref():
	case v.Customer() == "":
		v.BecomeGuest(d.token)
	default:
		if err := s.carts.MergeFrom(ctx, v, d.to); errors.Is(err, transfer.ErrNoRoom) {
			return errNoRoomToRedeem
		} else if err != nil {
			return err
		}
	}
	return nil
}

var (
	errGuestOnly = problem.New(problem.GuestOnly, "", locale.Text{
		locale.En: "Only a guest's cart can be handed over.",
		locale.Ar: "لا يمكن تسليم سوى سلة زائر.",
	})
	errNoRoomToRedeem = problem.New(problem.CartFull, "", locale.Text{
		locale.En: "Your cart has no room for these items. Please remove some and try again.",
		locale.Ar: "لا تتسع سلتك لهذه المنتجات. يُرجى إزالة بعضها ثم المحاولة مرة أخرى.",
	})
)
