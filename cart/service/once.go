package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// Once makes a keyed call once. It runs do unless the first result of the key is kept, and keeps that of do for
// 24 hours, to return it byte for byte. An error of do is no result: the next attempt runs do again. key and
// fingerprint are those of do's Conditions; without a key, Once only runs do. One attempt runs at a time. A call that is
// refused where nothing was stored, such as a create without a line that can be bought, leaves nothing in Redis.
func (s *Carts) Once(ctx context.Context, v *AgentVisit, key, fingerprint string, do func(context.Context) ([]byte, error)) ([]byte, error) {
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
	unmade := failed == nil && keyed.First && !v.created || failed != nil && !keyed.Again && isRefusal(failed)
	// Also if the client has disconnected: its next attempt must not wait.
	err = s.step(context.WithoutCancel(ctx), func(ctx context.Context) error {
		if unmade {
			return s.Redis.DropKeyed(ctx, v.home, keyed)
		}
		result, err = s.Redis.EndKeyed(ctx, v.home, keyed, result)
		return err
	})
	if failed != nil {
		return nil, failed
	}
	return result, err
}

// beginKeyed begins an attempt of a keyed call. A create may have run under the previous key.
func (s *Carts) beginKeyed(ctx context.Context, v *AgentVisit, key, fingerprint string) (keyed redisstore.Keyed, err error) {
	limited, trip := v.budget.spend(ctx, 1)
	defer trip.done()
	if v.earlier != (redisstore.Ref{}) {
		keyed, err = s.Redis.BeginKeyed(limited, v.earlier, key, fingerprint, 0, false)
	}
	if err == nil && keyed.Result == nil {
		mayStore := s.Creation.Refuse(v.client, errTooManyCarts) == nil
		keyed, err = s.Redis.BeginKeyed(limited, v.home, key, fingerprint, lifeOf(ctx), mayStore)
	}
	switch {
	case errors.Is(err, redisstore.ErrKeyReused):
		err = errKeyReused
	case errors.Is(err, redisstore.ErrKeyBusy):
		busy := cart.Unavailable("begin keyed call", err).After(time.Second)
		busy.Kind, err = problem.KindAgent, busy
	case errors.Is(err, redisstore.ErrKeyUnstored):
		err = s.tooManyCarts(v.Visit)
	case err == nil && keyed.First:
		s.Creation.Use(ctx, v.client)
		v.counted = true
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
