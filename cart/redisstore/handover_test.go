package redisstore_test

import (
	"errors"
	"strings"
	"testing"

	"commerce/auth"
	"commerce/auth/problem"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/deploy/assert"
)

// redeemKey returns an Idempotency-Key as a redeemer makes one.
func redeemKey(name string) string { return name + strings.Repeat("-", 22) }

// handOver returns a code of the guest's cart.
func (d *desk) handOver(token auth.CartToken) string {
	d.t.Helper()
	return assert.Must(d.HandOver(d.t.Context(), d.as("", token)))(d.t).Code
}

// redeem redeems a code, and returns the visit afterwards.
func (d *desk) redeem(v *service.Visit, code, key string) (*service.Visit, service.Changed) {
	d.t.Helper()
	changed, err := d.Redeem(d.t.Context(), v, service.Redemption{Code: code, Key: redeemKey(key)})
	assert.NoError(d.t, err)
	return v, changed
}

func (d *desk) wantRefused(err error, code problem.Code) {
	d.t.Helper()
	assert.That(d.t, refusedAs(err, code), "%v, want %s", err, code)
}

func TestHandOver_MovesAGuestsCartToAFreshToken(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×2 2×1")
	code := d.handOver(d.token)
	preview := assert.Must(d.PreviewHandover(t.Context(), d.as("", ""), code))(t)
	assert.Equal(t, linesOf(preview.Cart), "1×2 2×1", "the preview shows")
	v, changed := d.redeem(d.as("", ""), code, "phone")
	assert.Equal(t, linesOf(changed.Cart), "1×2 2×1", "the answer shows")
	assert.That(t, !changed.Replayed, "it is a replay")
	d.wantLines(d.as("", v.Token), "1×2 2×1")
	d.wantLines(d.as("", d.token), "")
	_, again := d.redeem(d.as("", ""), code, "phone")
	assert.That(t, again.Replayed && linesOf(again.Cart) == "1×2 2×1", "a retry answers %v, %q", again.Replayed, linesOf(again.Cart))
	_, err := d.Redeem(t.Context(), d.as("", ""), service.Redemption{Code: code, Key: redeemKey("other")})
	d.wantRefused(err, problem.NotFound)
	_, err = d.PreviewHandover(t.Context(), d.as("", ""), code)
	d.wantRefused(err, problem.NotFound)
	d.wantSettled()
}

func refusedAs(err error, code problem.Code) bool {
	p, ok := errors.AsType[*problem.Error](err)
	return ok && p.Code == code
}

var _ = redisstore.HandoverNote
