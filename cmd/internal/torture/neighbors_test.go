package torture

import (
	"context"
	"fmt"
	"io"
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
	quiet := s.shop(sized(time.Second, 30*time.Second))
	_ = bar.Add(1)
	p.lasted("p99 when quiet", quiet.p99())
	bound := 3 * max(quiet.p99(), quietFloor)
	p.lasted("limit: 3 × quiet, where less than 2 ms counts as 2 ms", bound)
	for _, n := range neighbors {
		beside, rate := s.beside(n)
		for range sized(2, 0) { // a busy machine, not the neighbor, may cause failures
			if beside.failed > 0 {
				beside, rate = s.beside(n)
			}
		}
		p.lasted("p99 beside "+n.name, beside.p99())
		p.detail("requests served to "+n.name, float64(rate), "per second")
		if beside.failed > 0 {
			p.broke("beside %s, %d of the shopper's %d requests failed, such as: %s", n.name, beside.failed, len(beside.took), beside.failure)
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

type street struct {
	t                 *testing.T
	service           *service
	shopper, neighbor *http.Client
	apiToken          string
	deepest           int // page
	made              atomic.Int64
}

func openStreet(t *testing.T) *street {
	database := catalog(t)
	program, settings := commerce.compiled(t), []string{"DATABASE_URL=" + database}
	s := &street{t: t, shopper: clientAt(t, "127.0.0.3"), neighbor: clientAt(t, "127.0.0.2"), deepest: 40}
	if *long {
		s.deepest = 199_000
		command(t, program, settings, "seed", "--subscriptions", "200000")
	}
	s.apiToken = command(t, program, settings, "token", "store", "--store", "1", "--name", "neighbor")
	s.service = startService(t, append(settings, "REDIS_URL="+ephemeral.StartRedis(t).URL, "RATE_LIMIT=on")...)
	return s
}

func clientAt(t testing.TB, address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: neighborPool, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: callLimit}
}

func (s *street) visitTo(client *http.Client, method, path, body string, headers ...string) int {
	r, err := http.NewRequestWithContext(context.Background(), method, s.service.URL()+path, strings.NewReader(body))
	if err != nil {
		return 0
	}
	r.Header.Set("X-Public-Key", storeOneKey)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0
	}
	return response.StatusCode
}

type shopping struct {
	took    []time.Duration
	failed  int
	failure string
}

func (s shopping) p99() time.Duration {
	sorted := slices.Sorted(slices.Values(s.took))
	return sorted[len(sorted)*99/100]
}

// shop lets the shopper read, add and edit for some time. If a request starts late, its latency
// counts from the time at which it was due.
func (s *street) shop(span time.Duration) (met shopping) {
	token := fmt.Sprintf("a-shoppers-token-%010d", s.made.Add(1))
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
		status := s.visitTo(s.shopper, c[0], c[1], c[2], "X-Cart-Token", token)
		met.took = append(met.took, time.Since(due))
		if status != http.StatusOK {
			met.failed++
			met.failure = fmt.Sprintf("%s %s: %d", c[0], c[1], status)
		}
	}
	return met
}

type neighbor struct {
	name string
	act  func(i int64) (status int)
	wait func() // runs before the measurement; may be nil
}

// beside measures a shopper beside a neighbor. rate is how many of the neighbor's requests
// per second were answered, except with 429 or 5xx.
func (s *street) beside(n neighbor) (met shopping, rate int64) {
	if n.wait != nil {
		n.wait()
	}
	span := sized(time.Second, 30*time.Second)
	var served, next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range neighborPool {
		all.Go(func() {
			for time.Since(began) < span {
				i := next.Add(1)
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / neighborRate)))
				if status := n.act(i); status > 0 && status < 500 && status != http.StatusTooManyRequests {
					served.Add(1)
				}
			}
		})
	}
	met = s.shop(span)
	all.Wait()
	return met, int64(float64(served.Load()) / time.Since(began).Seconds())
}

func (s *street) neighbors() []neighbor {
	return []neighbor{
		{name: "a reader of deep pages", act: s.deepPage},
		{name: "an owner of the largest cart", act: s.largeCart, wait: s.fillLargeCart},
		{name: "a client that merges", act: s.mergeCart()},
		{name: "a maker of carts", act: s.newCart},
		{name: "a client with bad credentials", act: s.badCredentials()},
	}
}

func (s *street) deepPage(i int64) int {
	path := fmt.Sprintf("/subscriptions?per_page=1&page=%d", int64(s.deepest)-i%20)
	return s.visitTo(s.neighbor, "GET", path, "", "Authorization", "Bearer "+s.apiToken)
}

const largeCartToken = "a-token-of-a-large-cart-00"

// largeLine returns the body of an add of one of 100 lines that have 64 KiB of text.
func largeLine(i int64) string {
	value := fmt.Sprintf("%03d-%s", i%100, strings.Repeat("f", 130))
	return fmt.Sprintf(`{"product_id":5,"fields":{"0":%q},"notice":%q}`, value, strings.Repeat("n", 500))
}

func (s *street) fillLargeCart() {
	for i := range int64(100) {
		for range 50 {
			if s.visitTo(s.neighbor, "POST", "/cart/add", largeLine(i), "X-Cart-Token", largeCartToken) == 200 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (s *street) largeCart(i int64) int {
	if i%4 == 0 {
		return s.visitTo(s.neighbor, "PATCH", "/cart/items/5", fmt.Sprintf(`{"quantity":%d}`, i%900+1), "X-Cart-Token", largeCartToken)
	}
	return s.visitTo(s.neighbor, "GET", "/cart", "", "X-Cart-Token", largeCartToken)
}

func (s *street) newToken() string { return fmt.Sprintf("a-new-cart-token-%010d", s.made.Add(1)) }

func (s *street) mergeCart() func(int64) int {
	var logins [64]string
	for i := range logins {
		logins[i] = "Bearer " + customer(s.t, fmt.Sprint("merging-", i))
	}
	return func(i int64) int {
		token := s.newToken()
		status := s.visitTo(s.neighbor, "POST", "/cart/add", `{"product_id":1003}`, "X-Cart-Token", token)
		if status != 200 {
			return status
		}
		return s.visitTo(s.neighbor, "GET", "/cart", "", "X-Cart-Token", token, "Authorization", logins[i%64])
	}
}

func (s *street) newCart(int64) int {
	return s.visitTo(s.neighbor, "POST", "/cart/add", `{"product_id":1004}`, "X-Cart-Token", s.newToken())
}

// badCredentials returns an act that sends JWTs with a wrong signature, which the service must
// verify, and API tokens that do not exist, which it must look up.
func (s *street) badCredentials() func(int64) int {
	bad := signJWT(s.t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), claimsOf(1, "1001"))
	secret := strings.Repeat("s", 43)
	return func(i int64) int {
		if i%2 == 0 {
			return s.visitTo(s.neighbor, "GET", "/cart", "", "Authorization", "Bearer "+bad)
		}
		return s.visitTo(s.neighbor, "GET", "/subscriptions", "", "Authorization", fmt.Sprintf("Bearer %d|%s", 1_000_000+s.made.Add(1), secret))
	}
}
