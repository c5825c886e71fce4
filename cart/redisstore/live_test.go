package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// sees waits for the next sighting of a listener, and compares it with a cart; "" for gone.
func sees(t *testing.T, l *redisstore.Listener, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := l.Next(ctx)
	assert.Require(t, err == nil, "next: %v, want %s", err, want)
	if want == "" {
		assert.Equal(t, got, redisstore.Sighting{Tag: "0.0.0", Gone: true}, "sighting")
	} else {
		assert.That(t, got.Tag == want && !got.Gone, "sighting %+v, want %s", got, want)
	}
}

func TestListen_SeesEachChange(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"single": ephemeral.Redis(t), "cluster": ephemeral.Cluster(t), "miniredis": "redis://" + miniredis.RunT(t).Addr(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, other := newReader(t, asService(t, url), true), newReader(t, url, true)
			ref := redisstore.GuestRef(newStoreID(), tokenOf("live"))
			_, err := r.Listen(t.Context(), ref)
			assert.ErrorIs(t, err, redisstore.ErrNoCart, "listen to nothing")
			first := r.add(ref)
			a := assert.Must(r.Listen(t.Context(), ref))(t)
			b := assert.Must(other.Listen(t.Context(), ref))(t)
			defer b.Close()
			sees(t, a, first.Tag())
			sees(t, b, first.Tag())
			for range 3 {
				tag := r.add(ref).Tag()
				sees(t, a, tag)
				sees(t, b, tag)
			}
			a.Close()
			assert.Equal(t, r.Listeners(), 0, "listeners")
			sees(t, b, other.add(ref).Tag())
			assert.NoError(t, r.client.Del(t.Context(), ref.CartKey()).Err())
		})
	}
}

func TestListen_EndsWhenTheCartIsMerged(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "1×1", "2×1")
	guest := assert.Must(d.redis.Listen(t.Context(), d.guest))(t)
	defer guest.Close()
	customer := assert.Must(d.redis.Listen(t.Context(), d.customer))(t)
	defer customer.Close()
	_, _ = assert.Must(guest.Next(t.Context()))(t), assert.Must(customer.Next(t.Context()))(t)
	d.read(d.as("c", d.token))
	sees(t, guest, "")
	c, _ := d.read(d.as("c", ""))
	sees(t, customer, c.Tag())
}
