package service

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
	"commerce/cart/redisstore"
	"commerce/cart/transfer"
)

// A hand-over moves a guest's cart to whoever redeems a code, by the steps of a merge: see "Handing over"
// in docs/design.md. The code names the cart and is stored nowhere.

const handoverLife = time.Hour

// Link is a code that opens a cart for whoever has it.
type Link struct {
	Code      string
	ExpiresAt time.Time
	URL       string // of the page that opens it; "" if the store has none
}

// linkTo returns a link. The URL has the code in its fragment, which no server gets.
func linkTo(v *Visit, kind, code string, ends time.Time) Link {
	l := Link{Code: code, ExpiresAt: ends}
	if v.Store.CartURL != "" {
		l.URL = v.Store.CartURL + "#" + kind + "=" + code
	}
	return l
}

// HandOver offers the guest's cart of a visit. Errors: problem.GuestOnly, problem.CartEmpty; problem.NotFound
// without Config.Keys.
func (s *Carts) HandOver(ctx context.Context, v *Visit) (Link, error) {
	switch {
	case s.Keys == nil:
		return Link{}, cart.ErrNoCode
	case v.customer != "":
		return Link{}, cart.ErrGuestOnly
	}
	stored, err := s.load(ctx, v)
	if err == nil && len(stored.Lines) == 0 {
		err = cart.ErrEmpty
	}
	if err != nil {
		return Link{}, err
	}
	return s.HandoverOf(v, stored.Cart, false), nil
}

// HandoverOf offers a guest's cart as it was read, which is not empty, without I/O. agent says that the
// visit is an agent's, whose id opens an empty cart afterwards. It needs Config.Keys. An agent whom the shopper has
// kept gets no code: redeeming it would give the agent a token, which shows the shopper's texts.
func (s *Carts) HandoverOf(v *Visit, c cart.Cart, agent bool) Link {
	if v.kept {
		return Link{}
	}
	ends := s.Now().Add(handoverLife).Truncate(time.Second)
	text := fmt.Sprintf("%s %s %d %t", v.own.TokenDigest(), c.Tag(), ends.Unix(), agent)
	return linkTo(v, "handover", s.Keys.Seal(handoverPurpose(v), []byte(text)), ends)
}

func handoverPurpose(v *Visit) string { return "handover " + strconv.FormatInt(v.Store.ID, 10) }

type handedOver struct {
	from    redisstore.Ref
	cartID  string // never another cart of that token
	version string // the cart's Tag at that time
	agent   bool
}

// opened returns what a code names. ok is false if it is expired, tampered with, or of another store.
func (s *Carts) opened(v *Visit, code string) (h handedOver, ok bool) {
	text, ok := s.Keys.Open(handoverPurpose(v), code)
	if !ok {
		return h, false
	}
	var digest string
	var ends int64
	_, err := fmt.Sscan(string(text), &digest, &h.version, &ends, &h.agent)
	h.cartID, _, _ = strings.Cut(h.version, ".")
	h.from = redisstore.GuestRefOf(v.Store.ID, digest)
	return h, err == nil && s.Now().Before(time.Unix(ends, 0))
}

// PreviewHandover returns the cart of a code; problem.NotFound if that cannot be redeemed. changed means that the cart
// is no longer as it was offered. Then do not show its texts: they may have been typed after the code was given away.
func (s *Carts) PreviewHandover(ctx context.Context, v *Visit, code string) (offered cart.Priced, changed bool, err error) {
	h, ok := s.opened(v, code)
	if !ok {
		return cart.Priced{}, false, cart.ErrNoCode
	}
	limited, trip := v.budget.spend(ctx, 1)
	stored, err := s.Redis.Load(limited, h.from)
	trip.done()
	switch {
	case err != nil:
		return cart.Priced{}, false, err
	case stored.ID != h.cartID:
		return cart.Priced{}, false, cart.ErrNoCode
	}
	if changed = stored.Tag() != h.version; changed {
		stored.Cart = s.withHiddenIDs(stored.Cart)
	}
	offered, err = s.price(ctx, v, stored.Cart)
	return offered, changed, err
}

// Redemption is a shopper's request to redeem a code.
type Redemption struct {
	Code      string
	Key       string // the Idempotency-Key, made by the redeemer: a retry has the same result
	IfMatch   string // as in Conditions, for the cart that the visit has
	KeepAgent bool   // an agent's id follows to a fresh token
}

// Redeem moves the cart that a code offers to the visit's cart, or to a fresh token: see target. Afterwards
// the visit's cart and Token are those that hold the lines. Errors: problem.NotFound for a code that cannot be
// redeemed by this key, problem.VersionMismatch, problem.CartFull, problem.RateLimited, problem.InvalidParameter for a guessable key.
// After problem.Unavailable, a retry completes what was begun.
func (s *Carts) Redeem(ctx context.Context, v *Visit, r Redemption) (Changed, error) {
	h, ok := s.opened(v, r.Code)
	switch {
	case !ok:
		return Changed{}, cart.ErrNoCode
	case auth.GuessableKey(r.Key): // whoever guesses it, and made the code, knows the fresh token
		return Changed{}, GuessableKey("Idempotency-Key")
	}
	d := s.newRedemption(v, h, r)
	var refused *problem.Error
	err := s.observed(ctx, v, func(ctx context.Context) error {
		err := s.redeem(ctx, v, d)
		if p, ok := errors.AsType[*problem.Error](err); ok && p.Code != problem.Unavailable {
			refused, err = p, nil
		}
		return err
	})
	switch {
	case refused != nil:
		return Changed{}, refused
	case errors.Is(err, cart.ErrNoRoom):
		return Changed{}, errNoRoomToRedeem
	case err != nil:
		return Changed{}, asUnavailable("redeem hand-over", err)
	}
	if err := s.enter(ctx, v, d); err != nil {
		return Changed{}, err
	}
	return s.redeemed(ctx, v, d)
}

type redeeming struct {
	handedOver
	keepAgent bool
	on        Conditions     // for the visit's own cart
	note      string         // under which every try of this key merges
	fresh     redisstore.Ref // the token that only this key leads to
	token     auth.CartToken // of fresh

	to       redisstore.Ref // the cart that has got the lines; zero while it is not known
	replayed bool           // an earlier request had moved them
}

func (s *Carts) newRedemption(v *Visit, h handedOver, r Redemption) *redeeming {
	derive := func(label string) string {
		sum, _ := s.Keys.Derive(r.Code[:len(s.Keys.Name())], label, r.Code, r.Key) // the key that has opened the code
		return base64.RawURLEncoding.EncodeToString(sum[:16])
	}
	token := auth.CartToken(derive("handover token"))
	return &redeeming{
		handedOver: h, keepAgent: r.KeepAgent, on: Conditions{IfMatch: r.IfMatch}, note: transfer.HandoverNote + derive("handover note")[:10],
		fresh: redisstore.GuestRef(v.Store.ID, token), token: token,
	}
}

// redeem moves the lines, unless an earlier try has. Each round finds out how far the hand-over is.
func (s *Carts) redeem(ctx context.Context, v *Visit, d *redeeming) error {
	for round := range 2 * mergeRounds {
		done, err := s.redeemRound(ctx, v, d)
		if done {
			d.replayed = round == 0
		}
		passing := errors.Is(err, redisstore.ErrUnconfirmed) || errors.Is(err, transfer.ErrMerging)
		if done || err != nil && !passing {
			return err
		}
	}
	return cart.Unavailable("redeem hand-over", errors.New("service: other requests kept changing the cart"))
}

// redeemRound makes the next merge that the hand-over needs. done means that it needs none.
func (s *Carts) redeemRound(ctx context.Context, v *Visit, d *redeeming) (done bool, err error) {
	var g redisstore.GuestCart
	var claim redisstore.Claim
	err = s.step(ctx, func(ctx context.Context) error {
		// First the source: what leaves it afterwards has arrived by then, or is claimed.
		if g, err = s.Redis.FindGuest(ctx, v.own, d.from, ""); err == nil && g.Claimed {
			claim, err = s.Redis.ClaimOn(ctx, d.from)
		}
		if err == nil {
			d.to, err = s.Redis.Redeemed(ctx, d.cartID, d.note, d.owners(v)...)
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
		return false, s.completeClaimed(ctx, v, claim.Owner, d.from)
	case g.Needs.CartID == d.cartID: // also if a failover has lost the claim
		return false, s.redeemInto(ctx, v, d, g)
	case known:
		return true, nil
	}
	return false, cart.ErrNoCode
}

// resumeRedemption brings the lines that an earlier try of this key has claimed to the owner that it chose.
func (s *Carts) resumeRedemption(ctx context.Context, v *Visit, d *redeeming, owner redisstore.Ref) error {
	err := s.completeClaimed(ctx, v, owner, d.from)
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
func (d *redeeming) owners(v *Visit) []redisstore.Ref {
	return slices.DeleteFunc([]redisstore.Ref{d.fresh, v.own, v.guest}, func(r redisstore.Ref) bool { return r == redisstore.Ref{} })
}

func (s *Carts) redeemInto(ctx context.Context, v *Visit, d *redeeming, g redisstore.GuestCart) error {
	to := d.to
	if (to == redisstore.Ref{}) {
		var err error
		if to, err = s.target(ctx, v, d); err != nil {
			return err
		}
	}
	g, err := s.ready(ctx, v, d.from, g)
	if err != nil || g.Needs.CartID != d.cartID {
		return err
	}
	m := merging{owner: to, guest: d.from, note: d.note, needs: g.Needs}
	if (d.to == redisstore.Ref{}) { // no part of it has arrived
		m.on = d.on
	}
	if d.agent {
		var follows redisstore.Ref
		if d.keepAgent && to == d.fresh {
			follows = to
		}
		m.moved = redisstore.MovedTo(follows)
	}
	_, err = s.mergeCart(ctx, v, &m)
	if version, is := errors.AsType[*redisstore.VersionError](err); is {
		return s.versionMismatch(ctx, v, version.Cart)
	}
	if to == d.fresh && (err == nil || errors.Is(err, redisstore.ErrUnconfirmed)) {
		s.Creation.Use(ctx, v.client)
	}
	return err
}

// target chooses the cart for the lines: the customer's own, or that of the visit's token if it is not
// empty, otherwise that of a fresh token, which whoever made the code does not know.
func (s *Carts) target(ctx context.Context, v *Visit, d *redeeming) (redisstore.Ref, error) {
	if v.customer != "" {
		return v.own, nil
	}
	if !v.Fresh && v.own != d.from {
		stored, err := s.load(ctx, v)
		if err != nil || len(stored.Lines) > 0 {
			return v.own, err
		}
	}
	if s.Creation.Refuse(v.client, errTooManyCarts) != nil {
		return redisstore.Ref{}, s.tooManyCarts(v)
	}
	return d.fresh, nil
}

// enter makes the cart with the lines the visit's. If an earlier try was a guest's and this one is a
// customer's, the guest's cart is merged, as on any login.
func (s *Carts) enter(ctx context.Context, v *Visit, d *redeeming) error {
	switch {
	case d.to == v.own:
	case v.customer == "":
		v.own, v.Token, v.Fresh = d.fresh, d.token, false
	default:
		v.guest = d.to
		s.Merge(ctx, v, "")
		if v.noRoom != nil {
			return errNoRoomToRedeem
		}
		if v.postponed {
			return cart.Unavailable("merge redeemed cart", errors.New("service: postponed"))
		}
	}
	return nil
}

func (s *Carts) redeemed(ctx context.Context, v *Visit, d *redeeming) (Changed, error) {
	priced, err := s.Read(ctx, v)
	if err != nil {
		return Changed{}, err
	}
	changed := Changed{Priced: priced, Replayed: d.replayed, Durability: s.durability(ctx, d.to)}
	s.replicated(changed.Durability)
	return changed, nil
}

// GuessableKey is the refusal of an idempotency key from which a secret would be derived, and that others may send
// too: see auth.GuessableKey. name is where it was sent.
func GuessableKey(name string) *problem.Error {
	return problem.New(problem.InvalidParameter, name, textGuessableKey, name)
}

func asUnavailable(doing string, err error) error {
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	return cart.Unavailable(doing, err)
}

var (
	errNoRoomToRedeem = problem.New(problem.CartFull, "", locale.Text{
		locale.En: "Your cart has no room for these items. Please remove some and try again.",
		locale.Ar: "لا تتسع سلتك لهذه المنتجات. يُرجى إزالة بعضها ثم المحاولة مرة أخرى.",
	})
	textGuessableKey = locale.Text{
		locale.En: "The %s must be random and have 22 to 255 visible ASCII characters.",
		locale.Ar: "يجب أن يكون %s عشوائيًا ومكوّنًا من 22 إلى 255 حرفًا مرئيًا من ASCII.",
	}
)
