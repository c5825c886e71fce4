package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cart/service"
)

// Once makes a keyed call once. It runs do unless the first result of the key is kept, and keeps that of do for
// 24 hours, to return it byte for byte. An error of do is no result: the next attempt runs do again. key and
// fingerprint are those of do's Conditions; without a key, Once only runs do. One attempt runs at a time. A call that is
// refused where nothing was stored, such as a create without a line that can be bought, leaves nothing in Redis.
func (s *Carts) Once(ctx context.Context, v *Visit, key, fingerprint string, do func(context.Context) ([]byte, error)) ([]byte, error) {
	if key == "" {
		return do(ctx)
	}
	keyed, err := s.beginKeyed(ctx, v, key, fingerprint)
	if err != nil || keyed.Result != nil {
		return keyed.Result, err
	}
	v.again, v.began = keyed.Again, keyed.Began
	result, failed := do(ctx)
	if failed != nil {
		result = nil
	}
	madeNothing := keyed.First && !v.HasCreated() && v.Ref() == v.home // a cart that was handed over keeps changing
	unmade := failed == nil && madeNothing || failed != nil && !keyed.Again && isRefusal(failed)
	// Also if the client has disconnected: its next attempt must not wait.
	err = s.carts.Step(context.WithoutCancel(ctx), func(ctx context.Context) error {
		if unmade {
			return s.dropKeyed(ctx, v.home, keyed)
		}
		result, err = s.endKeyed(ctx, v.home, keyed, result)
		return err
	})
	if failed != nil {
		return nil, failed
	}
	return result, err
}

// beginKeyed begins an attempt of a keyed call. A create may have run under the previous key.
func (s *Carts) beginKeyed(ctx context.Context, v *Visit, key, fingerprint string) (keyed attempt, err error) {
	limited, done := v.Within(ctx)
	defer done()
	if v.earlier != (redisstore.Ref{}) {
		keyed, err = s.beginAttempt(limited, v.earlier, key, fingerprint, 0, false)
	}
	if err == nil && keyed.Result == nil {
		mayStore := s.carts.RefuseCreation(v.Visit, 0) == nil
		keyed, err = s.beginAttempt(limited, v.home, key, fingerprint, lifeOf(ctx), mayStore)
	}
	switch {
	case errors.Is(err, errKeyReused):
		err = service.ErrKeyReused
	case errors.Is(err, errKeyBusy):
		busy := cart.Unavailable("begin keyed call", err).After(time.Second)
		busy.Kind, err = problem.KindAgent, busy
	case errors.Is(err, errKeyUnstored):
		err = s.carts.TooManyCarts(v.Visit)
	case err == nil && keyed.First:
		s.carts.CountCreation(ctx, v.Visit, 0)
		v.Counted = true
	}
	return keyed, err
}

// isRefusal reports whether err is the refusal of a call, which has changed nothing.
func isRefusal(err error) bool {
	refusal, ok := errors.AsType[*problem.Error](err)
	return ok && !slices.Contains([]problem.Code{problem.Unavailable, problem.OutcomeUnknown, problem.Internal}, refusal.Code)
}

// lifeOf returns how long an attempt may run: as long as its request. Redis makes no change after the request's
// deadline, so no attempt overlaps with the next.
func lifeOf(ctx context.Context) time.Duration {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return time.Minute
	}
	return time.Until(deadline) + time.Second
}
