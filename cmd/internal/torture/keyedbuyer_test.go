package torture

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// keyedBuyer fills one cart after another, one change at a time. Each change has a key. The
// buyer remembers which changes the replicas have confirmed.
type keyedBuyer struct {
	*shopper
	token func(cart int) string
	carts []*keyedCart
}

// keyedCart is a cart with one line.
type keyedCart struct {
	token     string
	confirmed []bool // of each acknowledged change, in their order
	open      bool   // the next change was sent, and its outcome is unknown
}

// current returns the cart that the buyer fills.
func (b *keyedBuyer) current() *keyedCart {
	if n := len(b.carts); n > 0 && len(b.carts[n-1].confirmed) < changesPerCart {
		return b.carts[n-1]
	}
	b.carts = append(b.carts, &keyedCart{token: b.token(len(b.carts))})
	return b.carts[len(b.carts)-1]
}

// buy makes the next change, or repeats it.
func (b *keyedBuyer) buy() reply {
	c := b.current()
	c.open = true
	r := b.change(c, len(c.confirmed))
	if r.outcome() == applied {
		c.confirmed, c.open = append(c.confirmed, r.Header.Get("Durability") == "confirmed"), false
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
