package redisstore

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"commerce/cart"
)

// Waiting is what is stored for a guest's token that a customer sends.
type Waiting struct {
	Claimed  bool             // an earlier request has claimed a cart and not finished its merge
	Applied  cart.KeyUse      // the change applied under the given key; zero for none
	Products []int64          // of the token's current cart
	Bring    cart.Reservation // what the cart that lies there now needs room for
}

// Any reports whether there is anything to merge.
func (w Waiting) Any() bool { return w.Claimed || w.Bring.CartID != "" }

// WaitingUnder returns what waits to be merged under a guest's token, and which change the
// guest's cart has applied under an idempotency key. key is the key's digest; "" for none.
func (s *Store) WaitingUnder(ctx context.Context, customer, guest Ref, key string) (Waiting, error) {
	var w Waiting
	err := s.askGuest(ctx, customer, guest, func(located) (err error) {
		pipe := s.client.Pipeline()
		question := askWaiting(ctx, pipe, guest, key)
		_, _ = pipe.Exec(ctx)
		w, err = s.answer(question)
		return err
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
	pipe := s.client.Pipeline()
	read := pipe.EvalSha(ctx, s.scripts.read.sha, []string{customer.cartKey()}, s.ttlOf(customer).Milliseconds())
	question := askWaiting(ctx, pipe, guest, "")
	_, _ = pipe.Exec(ctx)
	w, _ := s.answer(question)
	if redis.HasErrorPrefix(read.Err(), "NOSCRIPT") { // a pipeline does not send the script itself
		held, err := s.Load(ctx, customer)
		return held, w, err
	}
	held, err := s.readCart(read)
	return held, w, err
}

// AppliedUnder returns the change that a guest's cart has applied under an idempotency key,
// given by its digest; zero for none.
func (s *Store) AppliedUnder(ctx context.Context, customer, guest Ref, key string) (use cart.KeyUse, err error) {
	err = s.askGuest(ctx, customer, guest, func(located) error {
		pipe := s.client.Pipeline()
		question := askKey(ctx, pipe, guest, key)
		_, _ = pipe.Exec(ctx)
		use, err = question.answer()
		return err
	})
	return use, err
}

// waitingQuestion are the commands in a pipeline that ask for a Waiting.
type waitingQuestion struct {
	members *redis.MapStringStringCmd
	claimed *redis.IntCmd
	key     *keyQuestion // nil without an idempotency key
}

// askWaiting adds the commands to pipe. key is an idempotency key's digest; "" for none.
func askWaiting(ctx context.Context, pipe redis.Pipeliner, guest Ref, key string) waitingQuestion {
	q := waitingQuestion{members: pipe.HGetAll(ctx, guest.cartKey()), claimed: pipe.Exists(ctx, guest.claimedKey())}
	if key != "" {
		q.key = askKey(ctx, pipe, guest, key)
	}
	return q
}

func (s *Store) answer(q waitingQuestion) (Waiting, error) {
	if err := errors.Join(q.members.Err(), q.claimed.Err()); err != nil {
		return Waiting{}, cart.Unavailable("look for guest cart", err)
	}
	held, err := parseCart(flatten(q.members.Val()), 0, s.now())
	if err != nil {
		return Waiting{}, cart.Unavailable("look for guest cart", err)
	}
	w := Waiting{
		Claimed:  q.claimed.Val() > 0,
		Products: held.ProductIDs(),
		Bring:    held.Brings(),
	}
	if q.key != nil {
		w.Applied, err = q.key.answer()
	}
	return w, err
}

// flatten turns a hash into a list like HGETALL's in a script: field, value, …
func flatten(hash map[string]string) []any {
	flat := make([]any, 0, 2*len(hash))
	for member, value := range hash {
		flat = append(flat, member, value)
	}
	return flat
}

// lineOfKey follows a key's digest in the name of the member with the line that its change
// has changed.
const lineOfKey = ":l"

// keyQuestion are the commands in a pipeline that ask for one key's use.
type keyQuestion struct{ use, line *redis.StringCmd }

// askKey adds the commands to pipe.
func askKey(ctx context.Context, pipe redis.Pipeliner, guest Ref, key string) *keyQuestion {
	return &keyQuestion{pipe.HGet(ctx, guest.keysKey(), key), pipe.HGet(ctx, guest.keysKey(), key+lineOfKey)}
}

// answer returns the change applied under the key, without its time; zero for none.
func (q *keyQuestion) answer() (cart.KeyUse, error) {
	for _, err := range []error{q.use.Err(), q.line.Err()} {
		if err != nil && !errors.Is(err, redis.Nil) {
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
