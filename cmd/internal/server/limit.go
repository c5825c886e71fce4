package server

import (
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/sethvargo/go-limiter/memorystore"

	"commerce/cart/wire"
)

// clientRate is how many requests per second one instance accepts from one client
// address. It is high because a storefront that renders on its server sends the requests
// of many shoppers.
const clientRate = 1000

// chargedBytes is how many bytes of a response count as one more request. The largest carts
// have four times as many. At the full rate, they would slow down other clients. maxCharge is
// the maximum for one response. A page of subscriptions is smaller; a stream is limited
// otherwise.
const (
	chargedBytes = 32 << 10
	maxCharge    = 100
)

// rateLimit bounds the requests of each client. It counts in the process, so that it
// needs no round trip and works during outages.
func rateLimit(r *responder) (gin.HandlerFunc, error) {
	buckets, err := memorystore.New(&memorystore.Config{
		Tokens: clientRate, Interval: time.Second,
		SweepInterval: time.Minute, SweepMinTTL: time.Minute, // forget a client a minute after its last request
	})
	if err != nil {
		return nil, err
	}
	limit := strconv.Itoa(clientRate)
	return func(c *gin.Context) {
		_, left, reset, ok, err := buckets.Take(c.Request.Context(), wire.Client(c))
		if err != nil { // only after Close
			return
		}
		// The limiter has no injected clock, so its reset time needs the real one.
		wait := max(time.Until(time.Unix(0, int64(reset))), 0)
		// Names are in canonical form: net/http allocates to convert each other name.
		c.Header("Ratelimit-Limit", limit)
		c.Header("Ratelimit-Remaining", strconv.FormatUint(left, 10))
		c.Header("Ratelimit-Reset", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
		if !ok {
			r.fail(c, wire.Answer{}, errRateLimited)
			return
		}
		c.Next()
		for range min(c.Writer.Size()/chargedBytes, maxCharge) {
			_, _, _, _, _ = buckets.Take(c.Request.Context(), wire.Client(c))
		}
	}, nil
}
