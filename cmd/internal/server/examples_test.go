package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
	"commerce/docs"
	"commerce/subscriptions"
	"commerce/subscriptions/feed"
	"commerce/subscriptions/history"
	"commerce/subscriptions/suite"
)

var update = flag.Bool("update", false, "write the answers of the service to the examples in docs/openapi.yaml")

var exampleTime = time.Date(2025, 11, 20, 10, 0, 0, 0, time.UTC)

const (
	exampleToken   = "q3Zt0bWm5yV8uKc1RdXhLg"
	exampleRequest = "checkout-7f3a"
)

// The examples of answers in the document are what the service answers. -update rewrites them.
func TestExamples_AreAnswersOfTheService(t *testing.T) {
	t.Parallel()
	answers := exampleAnswers(t)
	text := string(docs.OpenAPI)
	at := strings.Index(text, "\n  examples:\n")
	assert.Require(t, at >= 0, "openapi.yaml has no components.examples")
	at += len("\n  examples:\n")
	var written strings.Builder
	written.WriteString(text[:at])
	unknown := maps.Clone(answers)
	for _, e := range regexp.MustCompile(`(?m)^    (\w+):\n      (summary: .+)$`).FindAllStringSubmatch(text[at:], -1) {
		name, summary := e[1], e[2]
		answer, found := answers[name]
		assert.That(t, found, "example %s: the test has no answer", name)
		delete(unknown, name)
		fmt.Fprintf(&written, "    %s:\n      %s\n      value:\n        %s\n", name, summary, asExample(t, answer))
	}
	assert.That(t, len(unknown) == 0, "openapi.yaml has no examples with these names: %q", slices.Sorted(maps.Keys(unknown)))
	if *update {
		assert.NoError(t, os.WriteFile("../../../docs/openapi.yaml", []byte(written.String()), 0o666))
		return
	}
	assert.Equal(t, strings.Split(written.String()[at:], "\n"), strings.Split(text[at:], "\n"), "run this test with -update: the service, compared with openapi.yaml")
}

// changing are parts of answers that differ at each run, and what the examples have for them.
var changing = []struct {
	pattern *regexp.Regexp
	example string
}{
	{regexp.MustCompile(`"cart_token":"[^"]+"`), `"cart_token":"` + exampleToken + `"`},
	{regexp.MustCompile(`"guest_cart":"[^"]+"`), `"guest_cart":"` + exampleToken + `"`},
	{regexp.MustCompile(`"expires_at":"[^"]+"`), `"expires_at":"2025-12-20T10:00:00Z"`},
	{regexp.MustCompile(`"id":"\w{30}"`), `"id":"89CJBUKPXAVLHTRD2OXHH64QBRFL6KG"`},
	{regexp.MustCompile(`"[\w-]{24}~1\.[A-Z2-7]{6}","item":\{"id":"(\d)`), `"89CJ${1}uH7pXw0cQm4TbAzq1Xw~1.K4ZQ2M","item":{"id":"$1`},
	{regexp.MustCompile(`"expires_at":"[^"]+","url"`), `"expires_at":"2025-11-20T11:00:00Z","url"`},
	{regexp.MustCompile(`[A-Za-z0-9_-]{80,}`), "89CJtdSXUoEIyMjbm8ZPtnXpe9HrTSnqIF48usRpMne7J8jXaWqzTkgil1ih3cYgLuPMd8c1C29pXip77o6wIPUQt5B7Ptq"}, // a code of a hand-over
	{regexp.MustCompile(`"code":"[\w-]{26}","expires_at":"[^"]+","url":"([^=]+)=[^"]+"`), `"code":"89CJ2l6fGq0nZc4mVb8xYw1kTA","expires_at":"2025-12-20T10:00:00Z","url":"$1=89CJ2l6fGq0nZc4mVb8xYw1kTA"`},
	{regexp.MustCompile(`"merge":\{"id":"[^"]+","at":"[^"]+"`), `"merge":{"id":"5APZMAR32G","at":"2025-11-20T10:00:00Z"`},
	{regexp.MustCompile(`cursor=[A-Za-z0-9_-]+`), `cursor=AAQFqTbl0dC8Mz9hZc3uTqSQGg`},
	{regexp.MustCompile(`A[A-Za-z0-9_-]{40,}`), `AdOIrOtWW_exAAAAAAAAAAAAAAAAAAIBjCcEAA4Xwm3B_g`}, // a cursor of changes
	{regexp.MustCompile(`"next":"AQ[A-Za-z0-9_-]{13,14}"`), `"next":"AQECqGrsDcA1pvU"`},
}

// asExample returns an answer as YAML, without what differs at each run: JSON indented, and
// other texts as a string.
func asExample(t *testing.T, answer []byte) string {
	t.Helper()
	text := string(answer)
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.example)
	}
	if !json.Valid([]byte(text)) {
		return string(assert.Must(json.Marshal(text))(t))
	}
	var indented bytes.Buffer
	assert.NoError(t, json.Indent(&indented, []byte(text), "        ", "  "))
	return indented.String()
}

func exampleAnswers(t *testing.T) map[string][]byte {
	t.Helper()
	answers := map[string][]byte{}
	add := func(name string, a answer) { answers[name] = a.Raw }
	cartExamples(t, add)
	refusalExamples(t, add)
	subscriptionExamples(t, add)
	faultExamples(t, add)
	agentExamples(t, add)
	return answers
}

// atExampleTime fixes the clock, and the URL of page links.
func atExampleTime(p *server.Parts) {
	p.Now = func() time.Time { return exampleTime }
	p.PublicURL = "https://api.example.com"
}

func exampleShop(t *testing.T, edits ...func(*server.Parts)) *shop {
	t.Helper()
	s := openShop(t, embeddedRedis(t), append(edits, atExampleTime)...)
	for _, c := range sample.Coupons(exampleTime)[1] {
		s.Catalog.PutCoupon(s.ID, c)
	}
	return s
}

// exampleCall sends a request with a fixed ID, which an error repeats.
func exampleCall(c *shopper, method, path, body string, headers ...string) answer {
	c.t.Helper()
	return c.send(method, path, body, append([]string{"X-Request-Id", exampleRequest}, headers...)...)
}

func cartExamples(t *testing.T, add func(string, answer)) {
	t.Helper()
	s := exampleShop(t)
	guest := &shopper{t: t, shop: s, Token: exampleToken}
	add("EmptyCart", guest.ok("GET", "/cart", ""))
	add("ValidCartValid", s.guest(t).fill("1×1").ok("GET", "/cart/validate", ""))
	add("AddedCart", guest.add(`{"product_id":1,"qty":2}`))
	guest.add(`{"product_id":4,"subscription_plan":41}`)
	guest.add(`{"product_id":5,"fields":{"Account email":"sara@example.com","Region":"us"},"notice":"Please activate before Friday."}`)
	add("CartWithCoupon", guest.redeem("TEN"))
	add("GuestCart", guest.ok("GET", "/cart", ""))
	many := &shopper{t: t, shop: s, Token: "m" + exampleToken}
	many.add(`{"product_id":10,"qty":10}`)
	add("CombinedDiscounts", many.redeem("EXTRA"))
	lister := &shopper{t: t, shop: s, Token: "a" + exampleToken}
	add("OpsEach", lister.ok("POST", "/cart/ops", `{"mode":"each","ops":[{"op":"add","product_id":1,"metadata":{"gift":"yes"}},{"op":"add","product_id":2,"qty":9}]}`))
	add("HandoverCode", guest.ok("POST", "/cart/handover", ""))
	shared := guest.ok("POST", "/cart/share", "")
	add("ShareCode", shared)
	add("SharedCartCopy", s.visitor(t).ok("GET", "/cart/share/"+codeIn(t, shared), ""))
	add("ShareDeleted", guest.ok("DELETE", "/cart/share/"+codeIn(t, shared), ""))
	add("CountGuest", guest.ok("GET", "/cart/count", ""))
	add("Summary", guest.ok("GET", "/cart/summary", ""))
	add("EditedLine", guest.ok("PATCH", "/cart/items/4.p41", `{"subscription_plan":42}`))
	add("VersionMismatchStale", exampleCall(guest, "PATCH", "/cart/items/1", `{"quantity":3}`, "If-Match", `"Jm2xq8Vd.7-5d41402a"`))
	plans := s.guest(t)
	plans.add(`{"product_id":4,"subscription_plan":41}`)
	plans.add(`{"product_id":4,"subscription_plan":42}`)
	add("RemovalRefusedSeveral", exampleCall(plans, "DELETE", "/cart/items/4", ""))

	buyer, visitor := s.customer(t, "1001"), s.guest(t)
	visitor.add(`{"product_id":2,"qty":3}`)
	buyer.add(`{"product_id":2,"qty":2}`)
	buyer.Token = visitor.Token
	add("MergedCart", buyer.add(`{"product_id":1}`))
	add("UndoneMerge", buyer.ok("POST", "/cart/merge/undo", `{"id":"`+buyer.cart().Merge.ID+`"}`))
	buyer.ok("DELETE", "/cart/clear", "")
	buyer.fill("2×3 1×1")
	other := s.guest(t).fill("1×1")
	second := s.customer(t, "1002")
	second.Token = s.guest(t).fill("1×1").Token
	add("CountCustomer", second.ok("GET", "/cart/count", ""))

	s.alter(2, func(p *cart.Product) { p.Stock = new(int64(2)) })
	add("InvalidCartStock", exampleCall(buyer, "GET", "/cart/validate", ""))
	add("InvalidCartEmpty", exampleCall(s.guest(t), "GET", "/cart/validate", ""))
	s.alter(1, func(p *cart.Product) { p.Price += 500 })
	add("ValidCartWarned", other.ok("GET", "/cart/validate", ""))
}

func refusalExamples(t *testing.T, add func(string, answer)) {
	t.Helper()
	s := exampleShop(t)
	guest := s.guest(t)
	call := func(name, method, path, body string, headers ...string) {
		t.Helper()
		add(name, exampleCall(guest, method, path, body, headers...))
	}
	call("InvalidCartStore", "GET", "/cart/validate", "", "X-Public-Key", "pk_unknown")
	call("BadRequestParameter", "GET", "/cart", "", "If-None-Match", "x")
	call("BadRequestStore", "GET", "/cart", "", "X-Public-Key", "pk_unknown")
	call("BadBodyJson", "POST", "/cart/add", `{"product_id":1`)
	call("UnauthenticatedExpired", "GET", "/cart", "", "Authorization", "Bearer "+s.expired(t))
	call("NotFoundPath", "GET", "/carts", "")
	call("ProductNotFoundProduct", "POST", "/cart/add", `{"product_id":404}`)
	call("ItemNotFoundLine", "PATCH", "/cart/items/404", `{"quantity":1}`)
	call("MethodNotAllowedMethod", "POST", "/cart/count", `{}`)
	guest.add(`{"product_id":1}`, "Idempotency-Key", "6f1e9c1e")
	call("IdempotencyConflictReused", "POST", "/cart/add", `{"product_id":2}`, "Idempotency-Key", "6f1e9c1e")
	call("BodyTooLargeLarge", "POST", "/cart/add", `{"notice":"`+strings.Repeat("x", 64<<10)+`"}`)
	call("UnsupportedMediaTypeForm", "POST", "/cart/add", `product_id=1`, "Content-Type", "application/x-www-form-urlencoded")
	call("AddRefusedInvalid", "POST", "/cart/add", `{"product_id":1,"qty":0}`)
	call("AddRefusedFields", "POST", "/cart/add", `{"product_id":5,"fields":{"Region":"fr"}}`)
	call("OpsNotFoundItem", "POST", "/cart/ops", `{"ops":[{"op":"add","product_id":1},{"op":"edit","item":"404","quantity":1}]}`)
	call("OpsRefusedMalformed", "POST", "/cart/ops", `{"ops":[{"op":"add","product_id":1,"qty":0},{"op":"edit","item":"1"}]}`)
	call("OpsRefusedStock", "POST", "/cart/ops", `{"ops":[{"op":"remove","item":"1"},{"op":"add","product_id":2,"qty":9}]}`)
	guest.add(`{"product_id":7,"qty":2}`)
	call("UpdateRefusedRange", "PATCH", "/cart/items/7", `{"quantity":1}`)
	minimum := s.guest(t)
	add("CouponRefusedMinimum", exampleCall(minimum, "POST", "/cart/coupon", `{"coupon":"FIVE"}`))
	add("HandoverRefusedEmpty", exampleCall(minimum, "POST", "/cart/handover", ""))
	add("RedeemRefusedMissing", exampleCall(minimum, "POST", "/cart/handover/redeem", `{}`, "Idempotency-Key", exampleToken))
	add("HandoverNotFoundCode", exampleCall(minimum, "POST", "/cart/handover/redeem", `{"code":"used"}`, "Idempotency-Key", exampleToken))
	add("MergeNotFoundUnknown", exampleCall(s.customer(t, "1001"), "POST", "/cart/merge/undo", `{"id":"5APZMAR32G"}`))
	add("UndoRefusedMissing", exampleCall(s.customer(t, "1001"), "POST", "/cart/merge/undo", `{}`))
	add("CouponRefusedUnknown", exampleCall(minimum, "POST", "/cart/coupon", `{"coupon":"NOPE"}`))

	buyer, visitor := s.customer(t, "1001"), s.guest(t)
	visitor.add(`{"product_id":2,"qty":3}`)
	buyer.add(`{"product_id":2,"qty":2}`)
	buyer.Token = visitor.Token
	add("AddRefusedStock", exampleCall(buyer, "POST", "/cart/add", `{"product_id":2}`))
}

func subscriptionExamples(t *testing.T, add func(string, answer)) {
	t.Helper()
	var memory suite.Memory
	s := exampleShop(t, func(p *server.Parts) { memory = p.Subscriptions.(suite.Memory) })
	_, all := sampleOf(s.ID, exampleTime)
	memory.Now = func() time.Time { return exampleTime }
	for _, each := range all {
		memory.Put(each)
	}
	call := func(name, path string, headers ...string) {
		t.Helper()
		add(name, exampleCall(s.merchant(t), "GET", path, "", headers...))
	}
	call("SubscriptionPage", "/subscriptions?page=3&per_page=1")
	call("SubscriptionsPast", "/subscriptions?page=9")
	call("ActiveSubscription", "/subscriptions/5001")
	call("PausedSubscription", "/subscriptions/5005")
	call("PastDueSubscription", "/subscriptions/5004")
	call("SubscriptionSummaryFigures", "/subscriptions/summary")
	memory.Record(append(pastsOf(s.ID, exampleTime), pastOf(all[0]))...)
	call("SubscriptionHistoryEvents", "/subscriptions/5001/history?limit=6")
	call("EventsRefusedWait", "/subscriptions/events?wait=30")
	canceled := s.merchant(t).ok("GET", "/subscriptions/events?limit=1000", "").list(t)
	gone := assert.Must(memory.Get(t.Context(), s.ID, 5001, "en"))(t)
	memory.Put(withReason(*gone))
	call("SubscriptionEventsCanceled", "/subscriptions/events?limit=2&after="+canceled.Next)
	memory.Put(*gone)
	call("HistoryRefusedAfter", "/subscriptions/5001/history?after=AdOIrOtWW_exAAAAAAAAAAAAAAAAAAIBjCcEAA4Xwm3B_g")
	call("SummaryRefusedFilter", "/subscriptions/summary?status=active")
	call("SubscriptionMetricsMonths", "/subscriptions/metrics?from=2025-10&to=2025-11")
	call("SubscriptionMetricsTable", "/subscriptions/metrics?from=2025-10&to=2025-11", "Accept", "text/csv")
	call("MetricsRefusedReversed", "/subscriptions/metrics?from=2025-11&to=2025-10")
	call("ListRefusedUnknown", "/subscriptions?customerMail=sara@example.com")
	call("ListRefusedTooFar", "/subscriptions?page=1000000&per_page=100")
	call("ChangesRefusedLimit", "/subscriptions/changes?limit=5000")
	call("SubscriptionNotFoundSubscription", "/subscriptions/404")
	add("APITokenRefusedMissing", exampleCall(s.guest(t), "GET", "/subscriptions", ""))

	read := s.merchant(t).ok("GET", "/subscriptions/changes?limit=48", "").list(t)
	after := "/subscriptions/changes?after=" + read.Next
	memory.Put(all[0])
	memory.Delete(s.ID, 5007, exampleTime.Add(-30*time.Second))
	call("SubscriptionChangesTwo", after)
	call("SubscriptionChangesLines", after, "Accept", "application/x-ndjson")
	call("SubscriptionChangesTable", after, "Accept", "text/csv")
	elsewhere := assert.Must(suite.NewMemory(nil, []subscriptions.Subscription{{StoreID: s.ID, ID: 1}}).
		Changes(t.Context(), s.ID, feed.Query{Limit: 1}))(t)
	call("CursorExpiredExpired", "/subscriptions/changes?after="+feed.OfChanges.Text(elsewhere.Next, s.ID))
}

// withReason returns a subscription that was canceled.
func withReason(s subscriptions.Subscription) subscriptions.Subscription {
	s.Status, s.CancelAtPeriodEnd, s.CanceledAt, s.CancellationReason = subscriptions.Canceled, true, exampleTime, "Too expensive"
	return s
}

// pastOf returns a past of s with a yearly plan, a renewal that failed, and a card that was removed.
func pastOf(s subscriptions.Subscription) history.Past {
	last := history.StateOf(&s, exampleTime.Add(-2*time.Hour))
	p := history.Past{StoreID: s.StoreID, ID: s.ID}
	for i, edit := range []func(*history.State){
		func(s *history.State) { s.Card = &subscriptions.Card{LastFour: "1234", Scheme: "visa"} },
		func(s *history.State) { s.Status = subscriptions.PastDue },
		func(s *history.State) { s.Card = last.Card },
		func(s *history.State) {
			s.Status, s.PeriodStart, s.PeriodEnd = last.Status, last.PeriodStart, last.PeriodEnd
		},
		func(s *history.State) { *s = last },
	} {
		state := history.State{Status: last.Status, VariantID: 42, Price: 20_000, Currency: last.Currency, Duration: "annually", PeriodStart: last.PeriodStart.AddDate(-1, 0, 0), PeriodEnd: last.PeriodStart}
		if i > 0 {
			state = p.States[i-1]
		}
		edit(&state)
		state.At = exampleTime.AddDate(0, 0, i-5)
		p.States = append(p.States, state)
	}
	return p
}

// faultExamples are answers of limits, and of what goes wrong in the service.
func faultExamples(t *testing.T, add func(string, answer)) {
	t.Helper()
	faults := answering(t,
		wire.Route{Method: "GET", Path: "/internal", Handle: func(*gin.Context) (wire.Answer, error) { return wire.Answer{}, errors.New("a bug") }},
		wire.Route{Method: "GET", Path: "/unknown", Handle: func(*gin.Context) (wire.Answer, error) {
			return wire.Answer{}, cart.OutcomeUnknown("change cart", errors.New("reply lost"))
		}},
	)
	for name, path := range map[string]string{"InternalDefect": "/internal", "OutcomeUnknownLate": "/unknown"} {
		w := ask(faults, "192.0.2.1", "GET", path, "X-Request-Id", exampleRequest)
		add(name, answer{Raw: bytes.ReplaceAll(w.Body.Bytes(), []byte("1800000000"), []byte("1763632800"))})
	}
	s := exampleShop(t, limited)
	guesser := s.guest(t).fill("1×1")
	guesser.guesses(20)
	add("CouponsLimitedLimited", exampleCall(guesser, "POST", "/cart/coupon", `{"coupon":"TEN"}`))
	a := guesser.ok("GET", "/cart/count", "")
	for a.Status == http.StatusOK { // the clock stands still, so no time gives requests back
		a = exampleCall(guesser, "GET", "/cart/count", "")
	}
	add("RateLimitedLimited", a)
	broken := exampleShop(t, func(p *server.Parts) {
		p.Redis.Client = dialRedis(t, "redis://127.0.0.1:1")
	})
	add("UnavailableDown", exampleCall(&shopper{t: t, shop: broken, Token: exampleToken}, "GET", "/cart", ""))
}

func (s *shop) expired(t *testing.T) string {
	t.Helper()
	yesterday := assert.Must(auth.NewJWT(auth.JWTConfig{Secret: []byte(jwtSecret), Now: func() time.Time { return time.Now().Add(-24 * time.Hour) }}))(t)
	return assert.Must(yesterday.Sign(s.ID, "1001", time.Hour))(t)
}

// alter changes one of the sample's products, as the sample has it.
func (s *shop) alter(id int64, edits ...func(*cart.Product)) {
	products := sample.Products()[1]
	p := *products[slices.IndexFunc(products, func(p *cart.Product) bool { return p.ID == id })]
	for _, edit := range edits {
		edit(&p)
	}
	s.Catalog.Put(s.ID, &p)
}
