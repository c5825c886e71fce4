package redisstore_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// A Redis that stalls runs pending scripts when it continues. By then the caller has
// outcome_unknown, and may have retried.
func TestChange_AfterItsDeadlineChangesNothing(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×1")
	ref := redisstore.GuestRef(d.store.ID, token)
	reply, err := d.redis.ClearAt(t.Context(), ref, time.Now().UnixMilli()-1)
	if err != nil || reply[0] != "late" {
		t.Errorf("a script after its deadline: %v, %v", reply, err)
	}
	d.wantLines(d.as("", token), "1×1")

	// An instance with a wrong estimate of Redis' clock corrects it without an error.
	r := redisstore.New(redisstore.Config{Client: d.client, TTL: twinTTLs})
	if err := r.MistakeClock(t.Context(), ref, -time.Hour); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if o, err := r.Change(ctx, ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "ID"}, redisstore.Clear()); err != nil || o.Word != redisstore.Applied {
		t.Errorf("with a wrong clock: %+v, %v", o, err)
	}
	if _, err := r.Change(expired(t), ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "ID"}, redisstore.Clear()); err == nil || isUnknown(err) {
		t.Errorf("after the request's deadline: %v", err)
	}
}

// A late claim would set a cart aside under a note that no longer exists.
func TestClaim_AfterItsDeadlineClaimsNothing(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×1")
	customer, guest, w := redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token), d.holds(tokenOf("t"))
	reply, err := d.redis.ClaimAt(t.Context(), customer, guest, newNote(), w.Bring, time.Now().UnixMilli()-1)
	if err != nil || reply[0] != "late" {
		t.Errorf("%v, %v", reply, err)
	}
	d.wantLines(d.as("", token), "1×1")
}

func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	t.Cleanup(cancel)
	return ctx
}

func isUnknown(err error) bool {
	e, ok := errors.AsType[*problem.Error](err)
	return ok && e.Code == problem.OutcomeUnknown
}
