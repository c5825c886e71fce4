package redisstore

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart"
)

// Waiting is what is stored for a guest's token that a customer sends.
type Waiting struct {
	Claimed  bool             // an earlier request has claimed a cart and not finished its merge
	Products []int64          // of the token's current cart
	Bring    cart.Reservation // what the cart that lies there now needs room for

	key  cart.KeyUse // the change applied under the given key; zero for none
	flat []string    // the token's current cart, or the stamps of one that was claimed
	now  time.Time   // by the guest's Redis
}

// Repeat is a change that a guest's cart has applied, and that a request repeats.
type Repeat struct {
	Conflict bool        // another request had the same idempotency key
	Line     cart.LineID // the line that the change has changed, if its request names another; else ""
}

// RepeatOf returns the change that a request repeats; nil for none. It knows the change of an
// idempotency key only if that key was asked for.
func (w Waiting) RepeatOf(on Conditions) *Repeat {
	switch {
	case on.Key != "":
		return repeatOfKey(w.key, on)
	case on.Stamp != "":
		return repeatOfStamp(stampsOf(w.flat), on, w.now)
	}
	return nil
}

func repeatOfKey(use cart.KeyUse, on Conditions) *Repeat {
	if use.Fingerprint == "" {
		return nil
	}
	return &Repeat{Conflict: use.Fingerprint != on.Fingerprint, Line: use.Line}
}

func repeatOfStamp(all stamps, on Conditions, now time.Time) *Repeat {
	if use := all[on.Stamp]; use.IsRetry(now) {
		return &Repeat{Line: use.Line}
	}
	return nil
}

// Any reports whether there is anything to merge.
func (w Waiting) Any() bool { return w.Claimed || w.Bring.CartID != "" }

// WaitingUnder returns what waits to be merged under a guest's token, and which changes the
// guest's cart has applied. key is the digest of an idempotency key; "" for none.
func (s *Store) WaitingUnder(ctx context.Context, customer, guest Ref, key string) (Waiting, error) {
	var w Waiting
	err := s.askGuest(ctx, customer, guest, func(at located) (err error) {
		q, err := ask(ctx, s, at, func(hash hashForm) waitingQuestion { return askWaiting(ctx, hash, guest, key) })
		if err != nil {
			return cart.Unavailable("look for guest cart", err)
		}
		if w, err = q.answer(); err != nil {
			return err
		}
		now, err := at.redisNow(ctx)
		if err != nil {
			return cart.Unavailable("ask time", err)
		}
		w.now = time.UnixMilli(now)
		return nil
	})
	return w, err
}

// LoadWithGuest reads a customer's cart and what waits under a guest's token: in one round
// trip, or in a cluster in two concurrent ones. quick limits the guest's round trip: if it
// fails, the zero Waiting is returned, and the merge is left to the next request.
func (s *Store) LoadWithGuest(ctx, quick context.Context, customer, guest Ref) (Held, Waiting, error) {
	if s.clustered() {
		asked := make(chan Waiting, 1)
		go func() {
			w, _ := s.WaitingUnder(quick, customer, guest, "")
			asked <- w
		}()
		held, err := s.Load(ctx, customer)
		return held, <-asked, err
	}
	at, err := s.masterOf(ctx, customer.cartKey())
	if err != nil {
		return Held{}, Waiting{}, cart.Unavailable("find master", err)
	}
	q, err := ask(ctx, s, at, func(hash hashForm) bothCarts {
		return bothCarts{ownCart{hash(ctx, customer.cartKey())}, askWaiting(ctx, hash, guest, "")}
	})
	if err != nil {
		return Held{}, Waiting{}, cart.Unavailable("read cart", err)
	}
	w, _ := q.guest.answer()
	held, err := s.held(ctx, at, customer, q.own.hash)
	return held, w, err
}

// bothCarts is the question of LoadWithGuest.
type bothCarts struct {
	own   ownCart
	guest waitingQuestion
}

func (q bothCarts) cmds() []redis.Cmder { return append(q.guest.cmds(), q.own.hash.cmd) }

// RepeatUnder returns the change that a guest's cart has applied and that a request repeats; nil
// for none.
func (s *Store) RepeatUnder(ctx context.Context, customer, guest Ref, on Conditions) (*Repeat, error) {
	w, err := s.WaitingUnder(ctx, customer, guest, on.Key)
	return w.RepeatOf(on), err
}

// waitingQuestion are the commands that ask for a Waiting.
type waitingQuestion struct {
	cart    hashRead
	claimed *redis.IntCmd
	key     *keyQuestion // nil without an idempotency key
}

// askWaiting returns the commands to send. key is an idempotency key's digest; "" for none.
func askWaiting(ctx context.Context, hash hashForm, guest Ref, key string) waitingQuestion {
	q := waitingQuestion{cart: hash(ctx, guest.cartKey()), claimed: redis.NewIntCmd(ctx, "exists", guest.claimedKey())}
	if key != "" {
		q.key = new(askKey(ctx, guest, key))
	}
	return q
}

func (q waitingQuestion) cmds() []redis.Cmder {
	cmds := []redis.Cmder{q.cart.cmd, q.claimed}
	if q.key != nil {
		cmds = append(cmds, q.key.cmds()...)
	}
	return cmds
}

func (q waitingQuestion) answer() (Waiting, error) {
	flat, err := q.cart.flat(nil)
	if err := cmp.Or(err, q.claimed.Err()); err != nil {
		return Waiting{}, cart.Unavailable("look for guest cart", err)
	}
	held, err := parseCart(flat)
	if err != nil {
		return Waiting{}, cart.Unavailable("look for guest cart", err)
	}
	w := Waiting{
		Claimed:  q.claimed.Val() > 0,
		Products: held.ProductIDs(),
		Bring:    held.Brings(),
		flat:     flat,
	}
	if q.key != nil {
		w.key, err = q.key.answer()
	}
	return w, err
}

// lineOfKey follows a key's digest in the name of the member with the line that its change
// has changed.
const lineOfKey = ":l"

// keyQuestion are the commands that ask for one key's use.
type keyQuestion struct{ use, line *redis.StringCmd }

// askKey returns the commands to send.
func askKey(ctx context.Context, guest Ref, key string) keyQuestion {
	return keyQuestion{
		redis.NewStringCmd(ctx, "hget", guest.keysKey(), key),
		redis.NewStringCmd(ctx, "hget", guest.keysKey(), key+lineOfKey),
	}
}

func (q keyQuestion) cmds() []redis.Cmder { return []redis.Cmder{q.use, q.line} }

// answer returns the change applied under the key, without its time; zero for none.
func (q keyQuestion) answer() (cart.KeyUse, error) {
	for _, err := range []error{q.use.Err(), q.line.Err()} {
		if err != nil && !isMissing(err) {
			return cart.KeyUse{}, cart.Unavailable("look for key in guest's cart", err)
		}
	}
	ms, fingerprint, _ := strings.Cut(q.use.Val(), " ")
	use := cart.KeyUse{Fingerprint: fingerprint}
	if lineMS, line, _ := strings.Cut(q.line.Val(), " "); lineMS == ms {
		use.Line = cart.LineID(line)
	}
	return use, nil
}
