package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
)

func isProblem(err error, code problem.Code) bool {
	e, ok := errors.AsType[*problem.Error](err)
	return ok && e.Code == code
}

// A Redis that stalls runs pending scripts when it continues, so scripts refuse to run late. An
// instance with a wrong estimate of Redis' clock corrects it without an error.
func TestChange_IsMadeOnlyBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×1")
	r := redisstore.New(redisstore.Config{Client: d.client, TTL: usualTTLs})
	assert.NoError(t, r.MistakeClock(t.Context(), d.guest, -time.Hour))
	clear := func(deadline time.Duration) (redisstore.Outcome, error) {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		return r.Change(ctx, d.guest, redisstore.Conditions{}, redisstore.Attempt{CartID: "ID", Limits: carttest.Limits}, redisstore.Only(cart.Clear()))
	}
	o, err := clear(10 * time.Second)
	assert.That(t, err == nil && o.Status == cart.Applied, "with a wrong clock: %+v, %v", o, err)
	_, err = clear(-time.Second)
	assert.That(t, err != nil && !isProblem(err, problem.OutcomeUnknown), "after the request's deadline: %v", err)
}
