package server

import (
	"math"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"

	"commerce/cart/wire"
)

const (
	// clientRate is how many requests per second one instance accepts from one client
	// address. It is high because a storefront that renders on its server sends the
	// requests of many shoppers.
	clientRate = 1000

	// clientBurst is how many requests a client may send at once. More would delay other
	// clients.
	clientBurst = 500

	// chargedBytes is how many bytes of a response count as one more request. The largest
	// carts have four times as many. At the full rate, they would delay other clients.
	chargedBytes = 32 << 10

	// maxCharge is the maximum charge for the size of one response. A page of
	// subscriptions has less. Streams have limits of their own.
	maxCharge = 100

	// maxClients is how many addresses an instance remembers. A client that it has forgotten
	// can send a full burst again.
	maxClients = 50_000
)

// rateLimit bounds the requests of each client. It counts in the process, so that it
// needs no round trip and works during outages.
func rateLimit(r *responder, now func() time.Time) gin.HandlerFunc {
	clients := otter.Must(&otter.Options[string, *rate.Limiter]{MaximumSize: maxClients})
	begin := func() (*rate.Limiter, bool) { return rate.NewLimiter(clientRate, clientBurst), false }
	limit := strconv.Itoa(clientRate)
	return func(c *gin.Context) {
		client, _ := clients.ComputeIfAbsent(wire.Client(c), begin)
		at := now()
		allowed := client.AllowN(at, 1)
		left := client.TokensAt(at)
		// Names are in canonical form: net/http allocates to convert each other name.
		c.Header("Ratelimit-Limit", limit)
		c.Header("Ratelimit-Remaining", strconv.Itoa(max(int(left), 0)))
		c.Header("Ratelimit-Reset", strconv.Itoa(int(math.Ceil((clientBurst-left)/clientRate))))
		if !allowed {
			r.fail(c, wire.Answer{}, errRateLimited)
			return
		}
		c.Next()
		if charge := min(c.Writer.Size()/chargedBytes, maxCharge); charge > 0 {
			client.ReserveN(now(), charge) // what is missing delays the client's next requests
		}
	}
}
