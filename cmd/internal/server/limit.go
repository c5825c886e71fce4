package server

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"commerce/auth/bounded"
	"commerce/auth/problem"
	"commerce/cart/wire"
)

// The rates (requests per second) and bursts that one instance accepts from one client. The
// rates are high because a storefront that renders on its server sends the requests of many
// shoppers. Higher bursts would delay other clients. A change takes Redis five times as long as
// a read. Reads and changes count separately, so that a page that polls too often cannot
// prevent its shopper from buying.
const (
	readRate, readBurst     = 1000, 500
	changeRate, changeBurst = 500, 500
)

const (
	// chargedBytes is the size in bytes of a response that counts as one more request. The
	// largest carts are four times as large. At the full rate, they would delay other clients.
	chargedBytes = 32 << 10

	// maxCharge is the maximum charge for the size of one response. A page of subscriptions is
	// charged less. Streams have their own limits.
	maxCharge = 100

	// maxClients is the number of clients that each budget remembers. A forgotten client can
	// send a full burst again.
	maxClients = 25_000
)

// rateLimit limits the requests of each client. It counts in the process, so that it needs no
// round trip and works during outages.
func rateLimit(r *responder, now func() time.Time) gin.HandlerFunc {
	reads, changes := newBudget("reads", readRate, readBurst), newBudget("changes", changeRate, changeBurst)
	return func(c *gin.Context) {
		budget := changes
		if safe(c.Request) {
			budget = reads
		}
		budget.spend(c, r, now)
	}
}

// budget limits the requests of one kind for each client.
type budget struct {
	rate, burst int
	limit       []string // the rate, as the values of its header
	refusal     *problem.Error
	clients     *bounded.Cache[string, *rate.Limiter]
}

// newBudget returns a budget. Metrics show the name.
func newBudget(name string, perSecond, burst int) *budget {
	refusal := *errRateLimited
	refusal.Budget = problem.Budget{Name: name, Uses: int64(perSecond)}
	return &budget{
		rate: perSecond, burst: burst, limit: []string{strconv.Itoa(perSecond)}, refusal: &refusal,
		clients: bounded.New[string, *rate.Limiter](maxClients, nil),
	}
}

// of returns the limiter of a client.
func (b *budget) of(client string) *rate.Limiter {
	return b.clients.GetOrPut(client, func() *rate.Limiter {
		return rate.NewLimiter(rate.Limit(b.rate), b.burst)
	})
}

// spend handles a request if its client has budget left. A large response counts as more
// requests. If the budget does not cover them, the client's next requests must wait.
func (b *budget) spend(c *gin.Context, r *responder, now func() time.Time) {
	client, at := b.of(wire.Client(c)), now()
	allowed := client.AllowN(at, 1)
	left := client.TokensAt(at)
	b.announce(c.Writer.Header(), left)
	if !allowed {
		r.fail(c, wire.Answer{}, b.refusal)
		return
	}
	c.Next()
	if charge := min(c.Writer.Size()/chargedBytes, maxCharge); charge > 0 {
		client.ReserveN(now(), charge)
	}
}

// announce sets the headers that describe the client's remaining budget.
func (b *budget) announce(h http.Header, left float64) {
	values := []string{
		strconv.Itoa(max(int(left), 0)),
		strconv.Itoa(int(math.Ceil((float64(b.burst) - left) / float64(b.rate)))),
	}
	// Canonical names and shared memory for the values save allocations.
	h["Ratelimit-Limit"] = b.limit
	h["Ratelimit-Remaining"] = values[:1:1]
	h["Ratelimit-Reset"] = values[1:]
}

// spent sets the headers of a response when budget b refused the request. The client may try
// again after the given seconds.
func spent(c *gin.Context, b problem.Budget, seconds string) {
	if b.Uses == 0 {
		return
	}
	c.Header("Ratelimit-Limit", strconv.FormatInt(b.Uses, 10))
	c.Header("Ratelimit-Remaining", "0")
	c.Header("Ratelimit-Reset", seconds)
}
