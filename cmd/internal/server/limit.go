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

// The rates (requests per second) and bursts that one instance accepts from one client. The rates are
// high because a storefront that renders on its server sends the requests of many shoppers. Higher
// bursts would delay other clients. Reads and changes count separately, so that a page that polls
// too often cannot prevent its shopper from buying.
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

	// maxClients is how many each limiter remembers. A forgotten one can send a full burst again.
	maxClients = 25_000
)

// rateLimit counts each client in the process: no round trip, and it works during outages.
func rateLimit(r *responder) gin.HandlerFunc {
	limiterOf := rateLimiters(1)
	return func(c *gin.Context) { limiterOf(safe(c.Request)).limit(c, r) }
}

// rateLimiters returns a function that returns the limiter of reads, or that of changes. Both allow so many times
// the rate and burst of one client.
func rateLimiters(times int) func(reads bool) *rateLimiter {
	ofReads := newRateLimiter("reads", times*readRate, times*readBurst)
	ofChanges := newRateLimiter("changes", times*changeRate, times*changeBurst)
	return func(reads bool) *rateLimiter {
		if reads {
			return ofReads
		}
		return ofChanges
	}
}

// perProfile is how many times the rates and bursts of one client the agents of a platform have together. A
// profile is not proven, so that no single client can use up the calls of a platform that it names.
const perProfile = 10

// limitProfiles limits the reads and the changes of a platform's agents, whatever their addresses.
func limitProfiles(now func() time.Time) func(profile string, reads bool) error {
	if now == nil {
		now = time.Now
	}
	limiterOf := rateLimiters(perProfile)
	return func(profile string, reads bool) error {
		if l := limiterOf(reads); !l.of(profile).AllowN(now(), 1) {
			return l.refusal
		}
		return nil
	}
}

type rateLimiter struct {
	rate, burst int
	header      []string // the rate, as the values of its header
	refusal     *problem.Error
	clients     *bounded.Cache[string, *rate.Limiter]
}

func newRateLimiter(name string, perSecond, burst int) *rateLimiter {
	refusal := *errRateLimited
	refusal.Budget = problem.Budget{Name: name, Uses: int64(perSecond)}
	return &rateLimiter{
		rate: perSecond, burst: burst, header: []string{strconv.Itoa(perSecond)}, refusal: &refusal,
		clients: bounded.New[string, *rate.Limiter](maxClients, nil),
	}
}

func (l *rateLimiter) of(client string) *rate.Limiter {
	return l.clients.GetOrPut(client, func() *rate.Limiter {
		return rate.NewLimiter(rate.Limit(l.rate), l.burst)
	})
}

// limit handles a request if its client has tokens left. A large response takes more of them. If
// they are not enough, the client's next requests must wait.
func (l *rateLimiter) limit(c *gin.Context, r *responder) {
	client, at := l.of(wire.Client(c)), r.Now()
	allowed := client.AllowN(at, 1)
	left := client.TokensAt(at)
	l.announce(c.Writer.Header(), left)
	if !allowed {
		r.fail(c, wire.Answer{}, l.refusal)
		return
	}
	c.Next()
	if charge := min(c.Writer.Size()/chargedBytes, maxCharge); charge > 0 {
		client.ReserveN(r.Now(), charge)
	}
}

func (l *rateLimiter) announce(h http.Header, left float64) {
	values := []string{
		strconv.Itoa(max(int(left), 0)),
		strconv.Itoa(int(math.Ceil((float64(l.burst) - left) / float64(l.rate)))),
	}
	// Canonical names and shared memory for the values save allocations.
	h["Ratelimit-Limit"] = l.header
	h["Ratelimit-Remaining"] = values[:1:1]
	h["Ratelimit-Reset"] = values[1:]
}
