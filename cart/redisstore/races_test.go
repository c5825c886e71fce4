package redisstore

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart/redisstore/layout"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// The master of one of the carts that may have got the lines is down: nobody knows yet whether it has them.
func TestHandOver_AnOwnerThatCannotBeAskedIsNotOneWithoutTheLines(t *testing.T) {
	t.Parallel()
	down, up := newRef(), newRef()
	s := hooked(t, ephemeral.Redis(t), hook{pipeline: func(cmds []redis.Cmder, next func() error) error {
		err := next()
		for _, cmd := range cmds {
			if len(cmd.Args()) > 1 && cmd.Args()[1] == down.offeredKey("ID") {
				cmd.SetErr(io.EOF)
			}
		}
		return err
	}})
	for _, owners := range [][]Ref{{down, up}, {up, down}} {
		to, err := s.Redeemed(t.Context(), "ID", "mhnote", owners...)
		assert.That(t, err != nil, "the lines are in %v", to)
	}
	s.Client.HSet(t.Context(), up.offeredKey("ID"), "n", "mhnote")
	to, err := s.Redeemed(t.Context(), "ID", "mhnote", down, up)
	assert.That(t, err == nil && to == up, "the lines are in %v, %v", to, err)
}

// While a customer is erased, another one's merge claims the token's next cart.
func TestErase_KeepsTheClaimOfAnotherCustomer(t *testing.T) {
	t.Parallel()
	var s *Store
	store := time.Now().UnixNano() % 1e9
	erased, other, guest := CustomerRef(store, "erased"), CustomerRef(store, "other"), GuestRefOf(store, "digest")
	claims := func(owner Ref) {
		assert.NoError(t, s.Client.HSet(context.WithoutCancel(t.Context()), guest.claimedKey(), "l", layout.Number, "i", "ID", "v", "1.m", "o", owner.tag()+" mnote "+anyMark()).Err())
	}
	s = hooked(t, ephemeral.Redis(t), hook{process: func(_ context.Context, cmd redis.Cmder, next func() error) error {
		if cmd.Name() == "watch" {
			claims(other)
		}
		return next()
	}})
	claims(erased)
	assert.Must(s.Erase(t.Context(), erased))(t)
	assert.That(t, strings.HasPrefix(s.Client.HGet(t.Context(), guest.claimedKey(), "o").Val(), other.tag()), "the claim is gone")
}
