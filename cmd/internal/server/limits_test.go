package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/limit"
	"commerce/cart/service"
	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

func TestRateLimit_LimitsEachClient(t *testing.T) {
	t.Parallel()
	h, log := handlerOf(t, func(c *server.Config) {
		c.RateLimit = true
		c.CORSOrigins = []string{"https://shop.example.com"}
		c.Areas = only("/quick", func(c *gin.Context) (wire.Answer, error) { c.Status(204); return wire.Answer{}, nil })
	})
	var served int
	var refused *httptest.ResponseRecorder
	for start := time.Now(); refused == nil && time.Since(start) < ephemeral.Patience(20*time.Second); {
		w := ask(h, "192.0.2.1", "GET", "/quick", "X-Forwarded-For", "198.51.100."+strconv.Itoa(served%200), "Origin", "https://shop.example.com")
		if w.Code == 204 {
			served++
		} else {
			refused = w
		}
		limit, _ := strconv.Atoi(w.Header().Get("RateLimit-Limit"))
		left, err1 := strconv.Atoi(w.Header().Get("RateLimit-Remaining"))
		reset, err2 := strconv.Atoi(w.Header().Get("RateLimit-Reset"))
		assert.Require(t, limit >= 200 && err1 == nil && left >= 0 && left <= limit && err2 == nil && reset >= 0 && reset <= 60, "after %d: %v", served, w.Header())
	}
	assert.Require(t, refused != nil, "%d requests, and none refused", served)
	assert.That(t, served >= 200, "refused after %d requests", served)
	decoded := decode[body](t, refused.Body.Bytes())
	wait, _ := strconv.Atoi(refused.Header().Get("Retry-After"))
	assert.That(t, refused.Code == 429 && decoded.Code == "rate_limited" && decoded.Message != "" && wait >= 1, "got %d %s, headers %v", refused.Code, refused.Body, refused.Header())
	assert.That(t, refused.Header().Get("Access-Control-Allow-Origin") != "" && refused.Header().Get("X-Request-Id") != "", "headers of a refusal: %v", refused.Header())
	assert.That(t, strings.Contains(log.String(), `"code":"rate_limited","limit":"reads","client":"192.0.2.1"`), "the log: %s", log)
	assert.Equal(t, ask(h, "192.0.2.2", "GET", "/quick").Code, 204, "status of another client")
	time.Sleep(time.Duration(wait)*time.Second + 50*time.Millisecond)
	assert.Equal(t, ask(h, "192.0.2.1", "GET", "/quick").Code, 204, "status after Retry-After")
}

// Otherwise one client could fill the disk of the log.
func TestRateLimit_LogsOneLinePerSecondAndClient(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h, log := handlerOf(t, func(c *server.Config) {
		c.RateLimit, c.Now = true, func() time.Time { return now }
		c.Areas = only("/quick", func(c *gin.Context) (wire.Answer, error) { c.Status(204); return wire.Answer{}, nil })
	})
	refuse := func(client string, times int) {
		for times > 0 {
			if ask(h, client, "GET", "/quick").Code == http.StatusTooManyRequests {
				times--
			}
		}
	}
	refuse("192.0.2.1", 30)
	refuse("192.0.2.2", 1)
	now = now.Add(time.Second)
	refuse("192.0.2.1", 2)
	var got []string
	for _, line := range log.logged(t) {
		if line["code"] == "rate_limited" {
			got = append(got, fmt.Sprint(line["client"], " ", line["refused"]))
		}
	}
	assert.Equal(t, got, []string{"192.0.2.1 1", "192.0.2.2 1", "192.0.2.1 30"}, "clients and their refusals")
}

// Otherwise a client that reads large carts slows down its neighbors.
func TestRateLimit_CountsALargeResponseAsSeveralRequests(t *testing.T) {
	t.Parallel()
	h, _ := handlerOf(t, func(c *server.Config) {
		c.RateLimit = true
		c.Now = func() time.Time { return time.Unix(1_760_000_000, 0) } // nothing refills
		c.Areas = only("/page", func(c *gin.Context) (wire.Answer, error) {
			size, err := strconv.Atoi(c.Query("size"))
			c.String(200, strings.Repeat("x", size))
			return wire.Answer{}, err
		})
	})
	left := func(size int) int {
		return assert.Must(strconv.Atoi(ask(h, "192.0.2.1", "GET", "/page?size="+strconv.Itoa(size)).Header().Get("RateLimit-Remaining")))(t)
	}
	before, between, after := left(150_000), left(1000), left(1000)
	assert.That(t, before-between == 5 && between-after == 1, "150,000 bytes count as %d requests, 1,000 as %d; want 5 and 1", before-between, between-after)
}

func TestRateLimit_OffSendsNoHeaders(t *testing.T) {
	for header := range newShop(t).guest(t).ok("GET", "/cart", "").Header {
		assert.That(t, !strings.HasPrefix(strings.ToLower(header), "ratelimit"), "%s is there", header)
	}
}

func creating(n int64) func(*server.Parts) {
	return func(p *server.Parts) {
		limited(p)
		p.Carts.Creation = limit.NewQuota(limit.Config{
			Name: fmt.Sprintf("test%d", nextStore()), Rates: []limit.Rate{{Uses: n, Per: time.Hour}},
			Redis: p.Redis.Client, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
		})
	}
}

// onLimitedRedis runs a test with a limit of 3 new carts, counted in each kind of Redis.
func onLimitedRedis(t *testing.T, test func(*testing.T, *shop)) {
	t.Helper()
	onEachKind(t, func(t *testing.T, url string) { test(t, openShop(t, url, dialed(t, url), creating(3))) })
}

func onEachKind(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Parallel()
	for name, open := range map[string]func(testing.TB) string{"embedded": embeddedRedis, "single": ephemeral.Redis, "cluster": ephemeral.Cluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// dialed gives a shop its Redis early, so that limits can use it.
func dialed(t testing.TB, url string) func(*server.Parts) {
	return func(p *server.Parts) { p.Redis.Client = dialRedis(t, asService(t, url), ephemeral.PatientRedis) }
}

func (a answer) wantWait(t testing.TB, least, most int64) {
	t.Helper()
	wait := assert.Must(strconv.ParseInt(a.Header.Get("Retry-After"), 10, 64))(t)
	assert.That(t, wait >= least && wait <= most, "Retry-After is %d s, want %d to %d", wait, least, most)
}

var from = []string{"X-Forwarded-For", "192.0.2.1"}

func TestCreation_StoresNothingBeyondTheLimit(t *testing.T) {
	onLimitedRedis(t, func(t *testing.T, s *shop) {
		known := s.guest(t)
		known.cart() // with a token, but without a cart
		known.add(addOne, from...)
		s.guest(t).redeem("TEN", from...)
		s.guest(t).add(addOne, append(from, "Idempotency-Key", "one")...)
		for name, call := range map[string][]string{
			"an add":          {"POST", "/cart/add", addOne},
			"a keyed add":     {"POST", "/cart/add", addOne, "Idempotency-Key", "two"},
			"a stamped add":   {"POST", "/cart/add", addOne, "X-Timestamp", "1763632800000"},
			"a coupon":        {"POST", "/cart/coupon", `{"coupon":"TEN"}`},
			"an add by a new": {"POST", "/cart/add", addOne, "X-Cart-Token", ""},
			"a list":          {"POST", "/cart/ops", `{"ops":[{"op":"add","product_id":1},{"op":"add","product_id":2}]}`},
			"a list in part":  {"POST", "/cart/ops", `{"ops":[{"op":"add","product_id":6},{"op":"add","product_id":2}],"mode":"each"}`},
		} {
			c := s.guest(t)
			c.Token = "made-up-cart-token-of-" + strconv.FormatInt(nextStore(), 10)
			refused := c.refused(429, "rate_limited", call[0], call[1], call[2], append(from, call[3:]...)...)
			refused.wantWait(t, 1, 1200)
			assert.Equal(t, fmt.Sprint(refused.Header["Ratelimit-Limit"], refused.Header["Ratelimit-Remaining"], refused.Header["X-Cart-Token"]), "[3] [0] []", "%s: headers", name)
			assert.Equal(t, refused.Header.Get("RateLimit-Reset"), refused.Header.Get("Retry-After"), "%s: RateLimit-Reset", name)
			got := c.cart()
			assert.That(t, got.Version == 0 && got.ExpiresAt == nil, "%s has stored %+v", name, got)
		}
		known.add(addOne, from...) // a cart that exists has no limit
		known.wantLines("1×2")
		s.guest(t).add(addOne, "X-Forwarded-For", "192.0.2.2") // nor has another address
		code := known.handOver()
		for _, redeemer := range []*shopper{s.guest(t), s.visitor(t)} { // each would get a new cart
			redeemer.refused(429, "rate_limited", "POST", "/cart/handover/redeem", codeBody(code), append(from, "Idempotency-Key", redeemerKey)...)
		}
		known.wantLines("1×2")
		s.guest(t).ok("POST", "/cart/handover/redeem", codeBody(code), "X-Forwarded-For", "192.0.2.2", "Idempotency-Key", redeemerKey)
		customer := s.customer(t, "1001")
		customer.add(addOne, from...)
		customer.wantLines("1×1")
	})
}

// Everything that a refusal would hide comes first.
func TestCreation_IsJudgedLast(t *testing.T) {
	onLimitedRedis(t, func(t *testing.T, s *shop) {
		first := s.guest(t)
		first.add(addOne, append(from, "Idempotency-Key", "one")...)
		listed := s.guest(t)
		listed.Token = "made-up-cart-token-of-a-list"
		for range 3 { // its repeats are counted no more
			listed.ok("POST", "/cart/ops", `{"ops":[{"op":"add","product_id":6}],"mode":"each"}`, append(from, "Idempotency-Key", "one")...)
		}
		s.guest(t).add(addOne, from...)
		a := first.add(addOne, append(from, "Idempotency-Key", "one")...)
		assert.That(t, a.replayed(t), "not a replay: %s", a.Raw)
		for _, call := range []struct {
			status              int
			code, path, payload string
			headers             []string
		}{
			{422, "out_of_stock", "/cart/add", `{"product_id":6}`, nil},
			{422, "validation_failed", "/cart/add", `{}`, nil},
			{422, "coupon_invalid", "/cart/coupon", `{"coupon":"OLD"}`, nil},
			{422, "out_of_stock", "/cart/ops", `{"ops":[{"op":"add","product_id":1},{"op":"add","product_id":6}]}`, nil},
			{412, "version_mismatch", "/cart/add", addOne, []string{"If-Match", `"x.1-y"`}},
			{429, "rate_limited", "/cart/add", addOne, []string{"If-Match", "*"}},
		} {
			s.guest(t).refused(call.status, call.code, "POST", call.path, call.payload, append(from, call.headers...)...)
		}
		// What stores nothing has no limit.
		c := s.guest(t)
		c.Token = "made-up-cart-token-of-a-guest"
		for range 5 {
			c.ok("DELETE", "/cart/clear", "", from...)
			c.ok("DELETE", "/cart/items/1", "", from...)
			c.ok("DELETE", "/cart/coupon", "", from...)
			c.ok("GET", "/cart", "", from...)
			c.refused(404, "item_not_found", "PATCH", "/cart/items/1", `{"quantity":2}`, from...)
		}
	})
}

func TestCreation_OfAMergedGuestIsCountedAsAnyOther(t *testing.T) {
	onLimitedRedis(t, func(t *testing.T, s *shop) {
		both, guest := s.customer(t, "1001"), s.guest(t)
		for i := range 3 {
			guest.add(addOne, from...)
			both.Token = guest.Token
			a := both.ok("GET", "/cart", "", from...)
			assert.Require(t, a.Body.Data.Count == int64(i+1), "after merge %d: %s", i+1, a.Raw)
		}
		guest.refused(429, "rate_limited", "POST", "/cart/add", addOne, from...)
		both.add(addOne, from...)
	})
}

// Calls that come at the same time can exceed the limit. The client then waits longer.
func TestCreation_WhatExceedsTheLimitDelaysTheNextCarts(t *testing.T) {
	s := realShop(t, dialed(t, ephemeral.Redis(t)), creating(10))
	var created atomic.Int64
	at(40, func(int) {
		if s.guest(t).send("POST", "/cart/add", addOne, from...).Status == 200 {
			created.Add(1)
		}
	})
	assert.Require(t, created.Load() >= 10, "%d carts were created, want at least 10", created.Load())
	earned := (created.Load() - 9) * 360 // seconds; a use comes back every 360 seconds
	s.guest(t).refused(429, "rate_limited", "POST", "/cart/add", addOne, from...).wantWait(t, earned-120, earned)
}

// onLimitedText runs a test with a limit of 4,000 bytes of text, counted in each kind of Redis.
func onLimitedText(t *testing.T, test func(*testing.T, *shop)) {
	t.Helper()
	onEachKind(t, func(t *testing.T, url string) {
		test(t, openShop(t, url, dialed(t, url), limited, func(p *server.Parts) {
			p.Carts.Text = limit.NewQuota(limit.Config{
				Name: fmt.Sprintf("test%d", nextStore()), Rates: []limit.Rate{{Uses: 4000, Per: time.Hour}}, Most: 4000,
				Redis: p.Redis.Client, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
			})
		}))
	})
}

func noted(product, bytes int) string {
	return fmt.Sprintf(`{"product_id":%d,"notice":%q}`, product, strings.Repeat("x", bytes))
}

func adds(op string) string { return `{"op":"add",` + op[1:] }

// Each way of storing text counts what it adds to the cart, once.
func TestText_OfGuestsIsLimitedForEachAddress(t *testing.T) {
	onLimitedText(t, func(t *testing.T, s *shop) {
		c, long := s.guest(t), func(n int) string { return strings.Repeat("x", n) }
		friend := s.guest(t)
		friend.add(noted(1, 500), from...)
		here := friend.logIn("1")
		here.add(noted(2, 500), from...) // a customer's text does not count, nor that of a cart that moves
		here.undo(from...)               // but that of the new guest's cart does, also by way of a customer's
		keyed := append([]string{"Idempotency-Key", "k"}, from...)
		c.add(noted(1, 200), keyed...)
		c.add(noted(1, 200), keyed...)
		for _, size := range []int{500, 100, 500, 400} { // 300 longer, shorter, and 400 longer
			c.ok("PATCH", "/cart/items/1", `{"notice":"`+long(size)+`"}`, from...)
		}
		c.ok("PATCH", "/cart/items/1", `{"metadata":{"`+long(40)+`":"`+long(460)+`"}}`, from...)
		c.ok("POST", "/cart/ops", `{"ops":[{"op":"metadata","metadata":{"`+long(40)+`":"`+long(460)+`"}}]}`, from...)
		c.ok("POST", "/cart/ops", `{"mode":"each","ops":[`+adds(noted(6, 500))+`,`+adds(noted(2, 400))+`]}`, from...) // 6 is out of stock
		c.refused(422, "out_of_stock", "POST", "/cart/add", noted(6, 500), from...)
		c.refused(412, "version_mismatch", "POST", "/cart/add", noted(1, 500), append(from, "If-Match", `"x.1-y"`)...)
		again := s.guest(t)
		again.add(noted(2, 300), "X-Forwarded-For", "192.0.2.2")
		again = again.logIn("2")
		merged := again.cart().Merge.ID

		s.guest(t).add(noted(1, 450), from...) // then 3,750 of 4,000
		s.guest(t).add(noted(1, 400), from...)

		before := c.cart()
		for name, call := range map[string][]string{
			"an add":               {"POST", "/cart/add", noted(8, 1)},
			"an add with metadata": {"POST", "/cart/add", `{"product_id":8,"metadata":{"a":"b"}}`},
			"a longer notice":      {"PATCH", "/cart/items/1", `{"notice":"` + long(401) + `"}`},
			"metadata":             {"PATCH", "/cart/items/1", `{"metadata":{"a":"b"}}`},
			"a list":               {"POST", "/cart/ops", `{"ops":[` + adds(addOne) + `,` + adds(noted(8, 1)) + `]}`},
		} {
			a := c.refused(429, "rate_limited", call[0], call[1], call[2], from...)
			a.wantWait(t, 60, 600)
			assert.Equal(t, a.Header.Get("RateLimit-Limit"), "4000", "%s: RateLimit-Limit", name)
			guest := s.guest(t)
			guest.Token = "made-up-cart-token-of-" + strconv.FormatInt(nextStore(), 10)
			if call[0] == "POST" {
				guest.refused(429, "rate_limited", call[0], call[1], call[2], from...)
			}
			assert.That(t, guest.cart().ExpiresAt == nil && c.cart().Version == before.Version, "%s has stored something", name)
		}
		again.refused(429, "rate_limited", "POST", "/cart/merge/undo", undoBody(merged), from...)

		assert.That(t, c.add(noted(1, 200), keyed...).replayed(t), "a repeat is judged")
		c.add(addOne, from...) // nothing else has this limit
		c.ok("PATCH", "/cart/items/1", `{"quantity":1,"notice":"`+long(390)+`"}`, from...)
		c.ok("POST", "/cart/ops", `{"mode":"each","ops":[`+adds(noted(8, 1))+`,`+adds(`{"product_id":2}`)+`]}`, from...)
		c.wantLines("1×1 2×2")
		c.share(from...)
		s.agent(t).call("create_cart", "", `{"line_items":[{"item":{"id":"1"},"quantity":1}]}`, "")
		s.customer(t, "3").add(noted(1, 500), from...)
		s.guest(t).add(noted(1, 500), "X-Forwarded-For", "192.0.2.2")
	})
}

// limited turns on the limits, for clients whose addresses a test names in
// X-Forwarded-For.
func limited(p *server.Parts) {
	p.RateLimit, p.TrustedProxies = true, []string{"127.0.0.1", "::1"}
	p.Carts.Guesses = service.NewGuesses(limit.Config{Redis: p.Redis.Client, Timeout: time.Minute, Now: p.Now, Log: slog.New(slog.DiscardHandler)})
}

// guesses sends n different codes that the store does not have, and that do not exceed the limit.
func (c *shopper) guesses(n int, headers ...string) {
	c.t.Helper()
	for range n {
		c.refused(422, "coupon_invalid", "POST", "/cart/coupon", aGuess(), headers...)
	}
}

// aGuess is a code that the store does not have, and that nobody has sent yet.
func aGuess() string { return fmt.Sprintf(`{"coupon":"GUESS%d"}`, nextStore()) }

func TestCouponGuesses_AreLimitedForEachCart(t *testing.T) {
	s := newShop(t, limited)
	c, other := s.guest(t).fill("1×1"), s.guest(t).fill("1×1")
	c.redeem("TEN", "Idempotency-Key", "k")
	c.guesses(20)
	c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`).wantWait(t, 500, 600) // what is left of 10 minutes
	assert.That(t, c.redeem("TEN", "Idempotency-Key", "k").replayed(t), "a repeat was judged")
	c.refused(412, "version_mismatch", "POST", "/cart/coupon", `{"coupon":"TEN"}`, "If-Match", `"x.1-y"`)
	c.ok("DELETE", "/cart/coupon", "")
	other.redeem("TEN")
	c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`, "X-Forwarded-For", "192.0.2.7")
}

func TestCouponGuesses_DoNotCountCodesThatApply(t *testing.T) {
	c := newShop(t, limited).customer(t, "1001").fill("1×1")
	for range 30 {
		c.redeem("TEN")
	}
	for range 30 { // neither of these calls judges a code
		c.refused(412, "version_mismatch", "POST", "/cart/coupon", `{"coupon":"GUESS"}`, "If-Match", `"x.1-y"`)
		c.refused(422, "validation_failed", "POST", "/cart/coupon", `{}`)
	}
	for range 10 { // the same code of one cart counts once, in whatever way it is typed
		c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"Twice "}`)
		c.refused(422, "coupon_invalid", "POST", "/cart/ops", `{"ops":[{"op":"coupon","coupon":"tWICE"}]}`)
	}
	c.guesses(19)
	c.refused(429, "rate_limited", "POST", "/cart/coupon", aGuess())
}

// Shoppers behind one address must not lock each other out with codes that are refused for another reason.
func TestCouponGuesses_DoNotCountOtherRefusals(t *testing.T) {
	s := newShop(t, limited)
	at(50, func(i int) {
		c := s.guest(t).fill("2×1") // 10 SAR, FIVE needs 20
		for range 3 {
			c.refused(422, "coupon_minimum", "POST", "/cart/coupon", `{"coupon":"FIVE"}`)
			c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"OLD"}`)
			c.refused(422, "coupon_minimum", "POST", "/cart/ops", `{"ops":[{"op":"coupon","coupon":"FIVE"}]}`)
		}
		c.redeem("TEN")
	})
	c := s.guest(t).fill("1×1")
	c.guesses(20)
	s.guest(t).fill("1×1").guesses(20)
	s.guest(t).fill("1×1").refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`)
}

// An empty cart with a token has its own limit: codes refused for other carts do not count.
func TestCouponGuesses_OfAnEmptyCartCountByItsToken(t *testing.T) {
	s := newShop(t, limited)
	c, other := s.guest(t), s.guest(t)
	c.cart()
	other.cart()
	c.guesses(20)
	c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`)
	other.guesses(20)
}

// Cart tokens can be made up, so all carts of an address share a limit, at all instances.
func TestCouponGuesses_OfAnAddressAreLimitedWhateverTheCart(t *testing.T) {
	onEachKind(t, func(t *testing.T, url string) {
		network := fmt.Sprintf("2001:db8:%x:%x:", os.Getpid()&0xffff, nextStore()&0xffff)
		instances := []*shop{openShop(t, url, dialed(t, url), limited), openShop(t, url, dialed(t, url), limited)}
		from := []string{"X-Forwarded-For", network + ":1"}
		for i := range 40 {
			c := instances[i%2].guest(t)
			switch i % 3 {
			case 0:
				c.add(addOne, from...)
			case 1:
				c.Token = "made-up-cart-token-number-" + strconv.Itoa(i)
			}
			c.redeem("TEN", from...)
			c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"GUESS"}`, from...) // once for each cart
		}
		for _, s := range instances {
			c := s.guest(t)
			c.add(addOne, from...)
			neighbor := network + "ffff::9" // the same subscriber
			refused := c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`, "X-Forwarded-For", neighbor)
			refused.wantWait(t, 300, 600) // what is left of 10 minutes
			assert.Equal(t, refused.Header.Get("RateLimit-Limit"), "40", "RateLimit-Limit")
			c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`, "X-Forwarded-For", "192.0.2."+strconv.FormatInt(s.ID%250, 10))
		}
		for _, last := range []string{"1::1", "2::1"} { // other subscribers of the /48
			site := strings.TrimSuffix(network, ":")
			site = site[:strings.LastIndex(site, ":")+1] + "a" + last
			for range 2 {
				instances[0].guest(t).fill("1×1").guesses(20, "X-Forwarded-For", site)
			}
		}
		c := instances[1].guest(t)
		c.add(addOne, from...)
		refused := c.refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`, "X-Forwarded-For", network[:strings.LastIndex(strings.TrimSuffix(network, ":"), ":")+1]+"a3::1")
		assert.Equal(t, refused.Header.Get("RateLimit-Limit"), "120", "RateLimit-Limit of the site")
	})
}

func TestCouponGuesses_AtTheSameTimeCannotPassTheLimit(t *testing.T) {
	s := newShop(t, limited)
	c := s.customer(t, "1001").fill("1×1")
	var judged atomic.Int64
	at(60, func(int) {
		if s.with(t, c).send("POST", "/cart/coupon", aGuess()).Status != http.StatusTooManyRequests {
			judged.Add(1)
		}
	})
	assert.Equal(t, judged.Load(), 20, "codes that were judged")
	s.with(t, c).refused(429, "rate_limited", "POST", "/cart/coupon", `{"coupon":"TEN"}`) // or it would tell which codes exist
}

func TestCouponGuesses_HaveNoLimitWithoutRateLimits(t *testing.T) {
	newShop(t).guest(t).fill("1×1").guesses(30)
}
