package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/limit"
	"commerce/cart/service"
	shares "commerce/cart/share"
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

// creating limits new carts to n an hour for each address.
func creating(n int64) func(*server.Parts) {
	return func(p *server.Parts) {
		limited(p)
		p.Carts.Creation = limit.NewQuota(limit.Config{
			Name: fmt.Sprintf("test%d", nextStore()), Rates: []limit.Rate{{Uses: n, Per: time.Hour}},
			Redis: p.Redis.Client, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
		})
	}
}

// limitedShop is realShop with limits, which package limit tests with each kind of Redis.
func limitedShop(t *testing.T, edits ...func(*server.Parts)) *shop {
	t.Helper()
	url := ephemeral.Redis(t)
	return realShop(t, append([]func(*server.Parts){dialed(t, url), limited}, edits...)...)
}

// dialed gives a shop its Redis early, so that limits can use it.
func dialed(t testing.TB, url string) func(*server.Parts) {
	return func(p *server.Parts) { p.Redis.Client = dialRedis(t, asService(t, url), ephemeral.PatientRedis) }
}

// limited turns on the limits, for clients whose addresses a test names in
// X-Forwarded-For.
func limited(p *server.Parts) {
	p.RateLimit, p.TrustedProxies = true, []string{"127.0.0.1", "::1"}
	c := limit.Config{Redis: p.Redis.Client, Timeout: time.Minute, Now: p.Now, Log: slog.New(slog.DiscardHandler)}
	p.Carts.Guesses, p.WrongCodes = service.NewGuesses(c), shares.NewLimit(c)
}

func (a answer) wantWait(t testing.TB, least, most int64) {
	t.Helper()
	wait := assert.Must(strconv.ParseInt(a.Header.Get("Retry-After"), 10, 64))(t)
	assert.That(t, wait >= least && wait <= most, "Retry-After is %d s, want %d to %d", wait, least, most)
}

var from, elsewhere = []string{"X-Forwarded-For", "192.0.2.1"}, []string{"X-Forwarded-For", "192.0.2.2"}

// newcomer is a guest with a token that nobody has used.
func (s *shop) newcomer(t testing.TB) *shopper {
	c := s.guest(t)
	c.Token = "made-up-cart-token-of-" + strconv.FormatInt(nextStore(), 10)
	return c
}

func TestCreation_StoresNothingBeyondTheLimit(t *testing.T) {
	s := limitedShop(t, creating(3))
	known := s.visitor(t) // with a token, but without a cart
	known.add(addOne, from...)
	s.guest(t).redeem("TEN", from...)
	friends := s.guest(t)
	friends.add(addOne, append(from, "Idempotency-Key", "one")...)
	here := friends.logIn("1")
	undone := undoBody(here.cart().Merge.ID)
	for name, call := range map[string][]string{
		"an add":          {"POST", "/cart/add", addOne},
		"a keyed add":     {"POST", "/cart/add", addOne, "Idempotency-Key", "two"},
		"a stamped add":   {"POST", "/cart/add", addOne, "X-Timestamp", "1763632800000"},
		"a coupon":        {"POST", "/cart/coupon", `{"coupon":"TEN"}`},
		"an add by a new": {"POST", "/cart/add", addOne, "X-Cart-Token", ""},
		"a list":          {"POST", "/cart/ops", `{"ops":[{"op":"add","product_id":1},{"op":"add","product_id":2}]}`},
		"a list in part":  {"POST", "/cart/ops", `{"ops":[{"op":"add","product_id":6},{"op":"add","product_id":2}],"mode":"each"}`},
	} {
		c := s.newcomer(t)
		refused := c.refused(429, "rate_limited", call[0], call[1], call[2], append(from, call[3:]...)...)
		refused.wantWait(t, 1, 1200)
		assert.Equal(t, fmt.Sprint(refused.Header["Ratelimit-Limit"], refused.Header["Ratelimit-Remaining"], refused.Header["X-Cart-Token"]), "[3] [0] []", "%s: headers", name)
		assert.Equal(t, refused.Header.Get("RateLimit-Reset"), refused.Header.Get("Retry-After"), "%s: RateLimit-Reset", name)
		got := c.cart()
		assert.That(t, got.Version == 0 && got.ExpiresAt == nil, "%s has stored %+v", name, got)
	}
	known.add(addOne, from...) // a cart that exists has no limit
	known.wantLines("1×2")
	s.guest(t).add(addOne, elsewhere...) // nor has another address, or a customer
	s.customer(t, "1001").add(addOne, from...)
	code := known.handOver()
	for _, redeemer := range []*shopper{s.guest(t), s.visitor(t)} { // each would get a new cart
		redeemer.refused(429, "rate_limited", "POST", redeem, codeBody(code), append(from, withKey(redeemerKey)...)...)
	}
	known.wantLines("1×2")
	s.guest(t).ok("POST", redeem, codeBody(code), append(elsewhere, withKey(redeemerKey)...)...)
	here.refused(429, "rate_limited", "POST", undo, undone, from...)
	here.ok("POST", undo, undone, elsewhere...)
	here.ok("POST", undo, undone, from...) // a repeat stores nothing
}

// Everything that a refusal would hide comes first.
func TestCreation_IsJudgedLast(t *testing.T) {
	s := limitedShop(t, creating(3))
	first, listed := s.guest(t), s.newcomer(t)
	first.add(addOne, append(from, "Idempotency-Key", "one")...)
	for range 3 { // its repeats are counted no more
		listed.ok("POST", "/cart/ops", `{"ops":[{"op":"add","product_id":6}],"mode":"each"}`, append(from, "Idempotency-Key", "one")...)
	}
	s.guest(t).add(addOne, from...)
	assert.That(t, first.add(addOne, append(from, "Idempotency-Key", "one")...).replayed(t), "not a replay")
	wantRefused(t, []refusal{
		{s.guest(t), "POST", "/cart/add", `{"product_id":6}`, from, 422, "out_of_stock", []string{"qty"}},
		{s.guest(t), "POST", "/cart/add", `{}`, from, 422, "validation_failed", []string{"product_id"}},
		{s.guest(t), "POST", "/cart/coupon", `{"coupon":"OLD"}`, from, 422, "coupon_invalid", []string{"coupon"}},
		{s.guest(t), "POST", "/cart/ops", `{"ops":[{"op":"add","product_id":1},{"op":"add","product_id":6}]}`, from, 422, "out_of_stock", []string{"ops.1.qty"}},
		{s.guest(t), "POST", "/cart/add", addOne, append(from, "If-Match", `"x.1-y"`), 412, "version_mismatch", []string{"If-Match"}},
		{s.guest(t), "POST", "/cart/add", addOne, append(from, "If-Match", "*"), 429, "rate_limited", nil},
	})
	c := s.newcomer(t)
	for range 5 { // What stores nothing has no limit.
		c.ok("DELETE", "/cart/clear", "", from...)
		c.ok("DELETE", "/cart/items/1", "", from...)
		c.ok("DELETE", "/cart/coupon", "", from...)
		c.refused(404, "item_not_found", "PATCH", "/cart/items/1", `{"quantity":2}`, from...)
	}
}

func noted(product, bytes int) string {
	return fmt.Sprintf(`{"product_id":%d,"notice":%q}`, product, strings.Repeat("x", bytes))
}

func adds(op string) string { return `{"op":"add",` + op[1:] }

// Each way of storing text counts what it adds to the cart, once.
func TestText_OfGuestsIsLimitedForEachAddress(t *testing.T) {
	s := limitedShop(t, func(p *server.Parts) { // 4,000 bytes an hour
		p.Carts.Text = limit.NewQuota(limit.Config{
			Name: fmt.Sprintf("test%d", nextStore()), Rates: []limit.Rate{{Uses: 4000, Per: time.Hour}}, Most: 4000,
			Redis: p.Redis.Client, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
		})
	})
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
	again.add(noted(2, 300), elsewhere...)
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
		guest := s.newcomer(t)
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
	s.guest(t).add(noted(1, 500), elsewhere...)
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

const ten = `{"coupon":"TEN"}`

func TestCouponGuesses_AreLimitedForEachCart(t *testing.T) {
	s := newShop(t, limited)
	c, other := s.guest(t).fill("1×1"), s.visitor(t)
	c.redeem("TEN", "Idempotency-Key", "k")
	c.refused(412, "version_mismatch", "POST", "/cart/coupon", aGuess(), "If-Match", `"x.1-y"`) // judges no code
	c.refused(422, "validation_failed", "POST", "/cart/coupon", `{}`)
	for range 3 { // the same code of one cart counts once, in whatever way it is typed, and one that is refused for another reason never
		c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"Twice "}`)
		c.refused(422, "coupon_invalid", "POST", "/cart/ops", `{"ops":[{"op":"coupon","coupon":"tWICE"}]}`)
		c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"OLD"}`)
		c.redeem("TEN")
	}
	c.guesses(19)
	c.refused(429, "rate_limited", "POST", "/cart/coupon", ten).wantWait(t, 500, 600) // what is left of 10 minutes
	c.refused(429, "rate_limited", "POST", "/cart/coupon", ten, "X-Forwarded-For", "192.0.2.7")
	assert.That(t, c.redeem("TEN", "Idempotency-Key", "k").replayed(t), "a repeat was judged")
	c.refused(412, "version_mismatch", "POST", "/cart/coupon", ten, "If-Match", `"x.1-y"`)
	c.ok("DELETE", "/cart/coupon", "")
	other.redeem("TEN") // an empty cart, which counts by its token
	other.guesses(20)
}

// Cart tokens can be made up, so all carts of an address share a limit, at all instances.
func TestCouponGuesses_OfAnAddressAreLimitedWhateverTheCart(t *testing.T) {
	t.Parallel()
	url := ephemeral.Redis(t)
	network := fmt.Sprintf("2001:db8:%x:%x:", os.Getpid()&0xffff, nextStore()&0xffff)
	instances := []*shop{openShop(t, url, dialed(t, url), limited), openShop(t, url, dialed(t, url), limited)}
	from := []string{"X-Forwarded-For", network + ":1"}
	for i := range 40 {
		c := instances[i%2].guest(t)
		switch i % 3 {
		case 0:
			c.add(addOne, from...)
		case 1:
			c = instances[i%2].newcomer(t)
		}
		c.redeem("TEN", from...)
		c.refused(422, "coupon_invalid", "POST", "/cart/coupon", `{"coupon":"GUESS"}`, from...) // once for each cart
	}
	for _, s := range instances {
		c := s.guest(t)
		refused := c.refused(429, "rate_limited", "POST", "/cart/coupon", ten, "X-Forwarded-For", network+"ffff::9") // the same subscriber
		refused.wantWait(t, 300, 600)
		assert.Equal(t, refused.Header.Get("RateLimit-Limit"), "40", "RateLimit-Limit")
		c.ok("POST", "/cart/coupon", ten, "X-Forwarded-For", "192.0.2."+strconv.FormatInt(s.ID%250, 10))
	}
}

// A list has one code in the first mode, and each refused code counts in both.
func TestCouponGuesses_OfListsCount(t *testing.T) {
	c := newShop(t, limited).visitor(t).fill("1×1")
	sold, none := operation{"add", "", `"product_id":1`}, operation{"add", "", `"product_id":404`}
	for i := range 10 {
		guess, other := operation{"coupon", "", fmt.Sprintf(`"coupon":"GUESS%d"`, i)}, operation{"coupon", "", fmt.Sprintf(`"coupon":"OTHER%d"`, i)}
		c.refused(422, "coupon_invalid", "POST", "/cart/ops", list("all", sold, guess)).names(t, "ops.1.coupon")
		c.refused(404, "product_not_found", "POST", "/cart/ops", list("all", none, guess)).names(t, "ops.0.product_id", "ops.1.coupon") // counted already
		assert.Equal(t, c.ok("POST", "/cart/ops", list("each", none, other)).Body.Data.Outcomes[1].Data.Reason, "gone", "reason")
	}
	a := c.refused(429, "rate_limited", "POST", "/cart/ops", list("all", sold, operation{"coupon", "", `"coupon":"TEN"`}))
	a.wantWait(t, 500, 600)
	assert.That(t, a.Body.Data.Op != nil && *a.Body.Data.Op == 1, "refused: %s", a.Raw)
	got := c.ok("POST", "/cart/ops", list("each", operation{"coupon", "", `"coupon":"GUESS"`}, sold)).Body.Data
	assert.That(t, got.Outcomes[0].Code == "rate_limited" && got.lines() == "1×2" && got.Coupon == nil, "%+v", got.Outcomes)
	c.ok("POST", "/cart/ops", list("all", operation{"coupon", "", `"coupon":null`}))
}

func TestShare_WrongCodesAreLimitedForEachAddress(t *testing.T) {
	s := limitedShop(t)
	network := fmt.Sprintf("2001:db8:%x:%x:", nextStore()>>16&0xffff, nextStore()&0xffff)
	from, neighbor := []string{"X-Forwarded-For", network + ":1"}, []string{"X-Forwarded-For", network + "ffff::9"} // the same subscriber
	owner := s.guest(t)
	owner.add(addOne, from...)
	code := owner.share(from...)
	for i := range 40 {
		c := s.guest(t)
		c.ok("GET", share+"/"+code, "", from...) // a right one does not count, nor one wrong code twice
		c.refused(404, "not_found", "GET", share+"/"+code+"0", "", from...)
		switch i % 3 {
		case 0:
			c.refused(404, "not_found", "GET", fmt.Sprint(share, "/", code, i), "", from...)
		case 1:
			c.refused(404, "not_found", "DELETE", fmt.Sprint(share, "/guess", i), "", from...)
		case 2:
			c.refused(404, "not_found", "POST", "/cart/ops", addsShared(fmt.Sprint("guess ", i)), from...)
		}
	}
	c := s.guest(t)
	c.refused(429, "rate_limited", "GET", share+"/"+code, "", neighbor...).wantWait(t, 300, 600)
	owner.refused(429, "rate_limited", "DELETE", share+"/"+code, "", neighbor...)
	c.refused(429, "rate_limited", "POST", "/cart/ops", addsShared(code), neighbor...)
	c.ok("POST", "/cart/ops", addsShared(code), append(elsewhere, "Idempotency-Key", "k")...)
	assert.That(t, c.ok("POST", "/cart/ops", addsShared(code), append(neighbor, "Idempotency-Key", "k")...).replayed(t), "a repeat was judged")
	c.ok("GET", share+"/"+code, "", elsewhere...)
}

func TestLimits_AreOffWithoutRateLimits(t *testing.T) {
	c := newShop(t).guest(t).fill("1×1")
	c.guesses(30)
	for header := range c.ok("GET", "/cart", "").Header {
		assert.That(t, !strings.HasPrefix(strings.ToLower(header), "ratelimit"), "%s is there", header)
	}
}
