package redisstore

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"commerce/cart"
)

// Waiting is what lies under a guest's token when a customer sends it.
type Waiting struct {
	Claimed  bool    // an earlier request has begun to merge a cart
	Applied  string  // fingerprint of the change under the key that was asked about; "" for none
	Products []int64 // of the cart that lies there now
	Bring    Bring
}

// Any reports whether there is anything to merge.
func (w Waiting) Any() bool { return w.Claimed || w.Bring.CartID != "" }

// WaitingUnder looks for what waits to be merged, and for the change that the guest's
// cart has applied under an idempotency key, given by its digest; "" for none.
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

// LoadWithGuest reads a customer's cart and what waits under a guest's token, in one
// round trip or, where they lie on two masters, in two at once. quick bounds the
// guest's: when that cannot be asked in time, nothing waits, and the merge is left to the
// next request.
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

// AppliedUnder asks a guest's Redis for the fingerprint of the change that was applied
// under an idempotency key, given by its digest; "" for none.
func (s *Store) AppliedUnder(ctx context.Context, customer, guest Ref, key string) (fingerprint string, err error) {
	err = s.askGuest(ctx, customer, guest, func(located) error {
		fingerprint, err = fingerprintOf(s.client.HGet(ctx, guest.keysKey(), key))
		return err
	})
	return fingerprint, err
}

// waitingQuestion asks what lies under a guest's token, as part of a pipeline.
type waitingQuestion struct {
	members *redis.MapStringStringCmd
	claimed *redis.IntCmd
	key     *redis.StringCmd // nil when no key was asked about
}

// askWaiting also asks about an idempotency key, by its digest; "" for none.
func askWaiting(ctx context.Context, pipe redis.Pipeliner, guest Ref, key string) waitingQuestion {
	q := waitingQuestion{members: pipe.HGetAll(ctx, guest.cartKey()), claimed: pipe.Exists(ctx, guest.claimedKey())}
	if key != "" {
		q.key = pipe.HGet(ctx, guest.keysKey(), key)
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
		Bring:    Bring{CartID: held.ID, Lines: int64(len(held.Lines)), Text: held.TextSize()},
	}
	if q.key != nil {
		w.Applied, err = fingerprintOf(q.key)
	}
	return w, err
}

// flatten turns a hash into the list that HGETALL gives a script.
func flatten(hash map[string]string) []any {
	flat := make([]any, 0, 2*len(hash))
	for member, value := range hash {
		flat = append(flat, member, value)
	}
	return flat
}

// fingerprintOf is that of the change applied under a key, "" for none.
func fingerprintOf(key *redis.StringCmd) (string, error) {
	value, err := key.Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", cart.Unavailable("look for key in guest's cart", err)
	}
	_, fingerprint, _ := strings.Cut(value, " ")
	return fingerprint, nil
}
