package torture

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// keyedBuyer fills one cart after another, one change at a time. Each change has a key. The
// buyer remembers the acknowledged changes.
type keyedBuyer struct {
	*shopper
	token func(cart int) string
	carts []*keyedCart
}

// keyedCart is a cart with one line.
type keyedCart struct {
	token string
	acks  []ack // in the order of the changes
	open  bool  // the next change was sent, and its outcome is unknown
}

// ack is the acknowledgment of a change.
type ack struct {
	at        time.Time
	confirmed bool // by all replicas
}

// A cart remembers its newest 256 idempotency keys, so each change of a cart can be repeated.
const changesPerCart = 200

// current returns the cart that the buyer fills.
func (b *keyedBuyer) current() *keyedCart {
	if n := len(b.carts); n > 0 && len(b.carts[n-1].acks) < changesPerCart {
		return b.carts[n-1]
	}
	b.carts = append(b.carts, &keyedCart{token: b.token(len(b.carts))})
	return b.carts[len(b.carts)-1]
}

// buy makes the next change, or repeats it.
func (b *keyedBuyer) buy() reply {
	c := b.current()
	c.open = true
	r := b.change(c, len(c.acks))
	if r.outcome() == applied {
		c.acks, c.open = append(c.acks, ack{time.Now(), r.Header.Get("Durability") == "confirmed"}), false
	}
	return r
}

// change makes or repeats a change of a cart.
func (b *keyedBuyer) change(c *keyedCart, i int) reply {
	return b.as(c.token, "").send("POST", "/cart/add", fmt.Sprintf(`{"product_id":%d}`, firstProduct),
		"Idempotency-Key", strconv.Itoa(i))
}

// look reads how many changes a cart has.
func (b *keyedBuyer) look(c *keyedCart) reply {
	return b.as(c.token, "").send("GET", "/cart/count", "")
}

// served repeats a call until it succeeds. It returns the last reply.
func served(call func() reply) (reply, bool) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		r := call()
		if r.Status == http.StatusOK || time.Since(began) > startLimit {
			return r, r.Status == http.StatusOK
		}
	}
}
