package torture

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// One client sends each kind of expensive request as fast as the rate limit allows, while a
// shopper at another address buys. Both share the CPU cores with the test, whose load generator
// counts as a part of the neighbor.
func TestPromise14_NoNeighborIsStarved(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 14, "no neighbor is starved", "the shopper's p99 at most 3 × the quiet one, no 5xx")
	s := openStreet(t)
	neighbors := s.neighbors()
	bar := p.progress("kinds of neighbors", len(neighbors)+1)
	quiet := s.shop(span())
	_ = bar.Add(1)
	p.lasted("p99 when quiet", quiet.p99())
	bound := 3 * max(quiet.p99(), quietFloor)
	p.lasted("limit: 3 × quiet, where less than 2 ms counts as 2 ms", bound)
	for _, n := range neighbors {
		beside, rate := s.beside(n)
		for try := 0; beside.failed > 0 && try < sized(2, 0); try++ { // a busy machine, not the neighbor, may cause failures
			beside, rate = s.beside(n)
		}
		p.lasted("p99 beside "+n.name, beside.p99())
		p.detail("requests served to "+n.name, float64(rate), "per second")
		if beside.failed > 0 {
			p.broke("beside %s, %d of the shopper's %d requests failed, such as: %v", n.name, beside.failed, len(beside.took), beside.failure)
		}
		assert.That(t, rate != 0, "%s did not get any answer: the test shows nothing", n.name)
		if *long && beside.p99() > bound {
			p.broke("beside %s, the shopper's p99 is %v, with a limit of %v", n.name, beside.p99(), bound)
		}
		_ = bar.Add(1)
	}
}

const (
	quietFloor   = 2 * time.Millisecond // differences below 3 × this are noise of the scheduler
	shopperRate  = 50                   // requests per second
	neighborRate = 1100                 // requests per second: a little over the limit
	neighborPool = 16                   // its connections
)

// span is how long each measurement takes.
func span() time.Duration { return sized(time.Second, 30*time.Second) }

type street struct {
	t                 *testing.T
	shopper, neighbor *shopper // at addresses of their own
	apiToken          string
	deepest           int64 // page
	made              atomic.Int64
}

func openStreet(t *testing.T) *street {
	database := catalog(t)
	s := &street{t: t, deepest: 40, apiToken: apiToken(t, database, "neighbor")}
	if *long {
		s.deepest = 199_000
		command(t, []string{"DATABASE_URL=" + database}, "seed", "--subscriptions", "200000")
	}
	service := startService(t, "DATABASE_URL="+database, "REDIS_URL="+ephemeral.StartRedis(t).URL, "RATE_LIMIT=on")
	for address, client := range map[string]**shopper{"127.0.0.2": &s.neighbor, "127.0.0.3": &s.shopper} {
		*client = newShopper(t, service)
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		(*client).client.Transport = &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: neighborPool, DisableCompression: true}
	}
	return s
}

type shopping struct {
	took    []time.Duration
	failed  int
	failure reply
}

func (s shopping) p99() time.Duration {
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[len(sorted)*99/100]
}

// shop lets the shopper read, add and edit for some time. If a request starts late, its latency
// counts from the time at which it was due.
func (s *street) shop(span time.Duration) (met shopping) {
	shopper := s.shopper.as(s.newToken(), "")
	calls := [][3]string{
		{"POST", "/cart/add", `{"product_id":1001}`},
		{"GET", "/cart"},
		{"PATCH", "/cart/items/1001", `{"quantity":3}`},
		{"GET", "/cart"},
	}
	began := time.Now()
	for i := range int(span.Seconds() * shopperRate) {
		due := began.Add(time.Duration(i) * time.Second / shopperRate)
		time.Sleep(time.Until(due))
		c := calls[i%len(calls)]
		r := shopper.send(c[0], c[1], c[2])
		met.took = append(met.took, time.Since(due))
		if r.Status != http.StatusOK {
			met.failed++
			met.failure = r
		}
	}
	return met
}

type neighbor struct {
	name string
	act  func(i int64) reply
	wait func() // runs before the measurement; may be nil
}

// beside measures a shopper beside a neighbor. rate is how many of the neighbor's requests
// per second were answered, except with 429 or 5xx.
func (s *street) beside(n neighbor) (met shopping, rate int64) {
	if n.wait != nil {
		n.wait()
	}
	var served, next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range neighborPool {
		all.Go(func() {
			for time.Since(began) < span() {
				i := next.Add(1)
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / neighborRate)))
				if r := n.act(i); r.Status > 0 && r.Status < 500 && r.Status != http.StatusTooManyRequests {
					served.Add(1)
				}
			}
		})
	}
	met = s.shop(span())
	all.Wait()
	return met, int64(float64(served.Load()) / time.Since(began).Seconds())
}

func (s *street) newToken() string { return fmt.Sprintf("a-new-cart-token-%010d", s.made.Add(1)) }

// largeLine returns the body of an add of one of 100 lines that have 64 KiB of text.
func largeLine(i int64) string {
	value := fmt.Sprintf("%03d-%s", i%100, strings.Repeat("f", 130))
	return fmt.Sprintf(`{"product_id":5,"fields":{"0":%q},"notice":%q}`, value, strings.Repeat("n", 500))
}

func (s *street) neighbors() []neighbor {
	large := s.neighbor.as("a-token-of-a-large-cart-00", "")
	var logins [64]string
	for i := range logins {
		logins[i] = customer(s.t, fmt.Sprint("merging-", i))
	}
	// The service must verify a JWT with a wrong signature, and look up an API token that does not exist.
	forged := signJWT(s.t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), claimsOf(1, "1001"))
	secret := strings.Repeat("s", 43)
	return []neighbor{
		{name: "a reader of deep pages", act: func(i int64) reply {
			path := fmt.Sprintf("/subscriptions?per_page=1&page=%d", s.deepest-i%20)
			return s.neighbor.send("GET", path, "", "Authorization", "Bearer "+s.apiToken)
		}},
		{name: "an owner of the largest cart", act: func(i int64) reply {
			if i%4 == 0 {
				return large.send("PATCH", "/cart/items/5", fmt.Sprintf(`{"quantity":%d}`, i%900+1))
			}
			return large.send("GET", "/cart", "")
		}, wait: func() {
			for i := range int64(100) {
				_, ok := served(func() reply { return large.send("POST", "/cart/add", largeLine(i)) })
				assert.Require(s.t, ok, "the largest cart cannot be filled")
			}
		}},
		{name: "a client that merges", act: func(i int64) reply {
			guest := s.neighbor.as(s.newToken(), "")
			if r := guest.send("POST", "/cart/add", `{"product_id":1003}`); r.Status != http.StatusOK {
				return r
			}
			return guest.as(guest.Token, logins[i%64]).send("GET", "/cart", "")
		}},
		{name: "a maker of carts", act: func(int64) reply {
			return s.neighbor.as(s.newToken(), "").send("POST", "/cart/add", `{"product_id":1004}`)
		}},
		{name: "a client with bad credentials", act: func(i int64) reply {
			if i%2 == 0 {
				return s.neighbor.as("", forged).send("GET", "/cart", "")
			}
			return s.neighbor.send("GET", "/subscriptions", "", "Authorization", fmt.Sprintf("Bearer %d|%s", 1_000_000+s.made.Add(1), secret))
		}},
	}
}
