package auth

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/deploy/assert"
)

const neighbor, guesser = "192.0.2.1", "192.0.2.1" // behind one address

func threeFailures() *limit.Quota {
	return limit.NewQuota(limit.Config{Name: "credentials", Rates: []limit.Rate{{Uses: 3, Per: time.Hour}}, Now: atNoon})
}

func TestFailures_InvalidTokensBeyondTheLimitAreRateLimited(t *testing.T) {
	t.Parallel()
	tokens := newTestJWT()
	callers := NewCartCallers(Config{Stores: testStores(), Tokens: tokens, Failures: threeFailures()})
	valid, header := sign(tokens, 1, "c"), strings.Split(sign(tokens, 1, "c"), ".")[0]
	send := func(token, client string) error {
		_, err := callers.Identify(cartRequest("Authorization", "Bearer "+token), client)
		return err
	}
	// Genuine tokens do not count, however many there are.
	for range 20 {
		wantRefusal(t, send(hs256(testSecret, plainHeader, `{"sub":"c","store_id":1,"exp":1}`), guesser), errTokenExpired)
		_, err := callers.Identify(cartRequest("Authorization", "Bearer "+sign(tokens, 2, "c"), "X-Public-Key", "pk_one"), guesser)
		wantRefusal(t, err, errOtherStore)
	}
	wantRefusal(t, send(hs256(previousSecret, plainHeader, plainClaims), guesser), errTokenSignature)
	wantRefusal(t, send("garbage", guesser), errTokenMalformed)
	wantRefusal(t, send(header+".e30.x", guesser), errTokenMalformed)
	for range 5 {
		refused := wantCode(t, send("garbage", guesser), problem.RateLimited)
		assert.That(t, refused.RetryAfter == 20*time.Minute && refused.Budget == (problem.Budget{Name: "credentials", Uses: 3}),
			"Retry-After %v, %+v", refused.RetryAfter, refused.Budget)
	}
	wantRefusal(t, send(valid, neighbor), nil)
	wantRefusal(t, send(sign(tokens, 1, "never seen before"), neighbor), nil)
	wantRefusal(t, send(hs256(testSecret, plainHeader, `{"sub":"c","store_id":1,"exp":1}`), neighbor), errTokenExpired)
	wantRefusal(t, send("garbage", "192.0.2.2"), errTokenMalformed)
}

func TestFailures_OfAPITokensCauseNoLookupsBeyondTheLimit(t *testing.T) {
	t.Parallel()
	ledger, token, _ := newLedger(t)
	tokens := NewAPITokens(APITokensConfig{Source: ledger, Stores: testStores(), Failures: threeFailures(), TTL: time.Nanosecond})
	send := func(token, client string) error {
		_, _, err := tokens.Identify(apiRequest(token), client)
		return err
	}
	guess := func(id int) string { return fmt.Sprintf("%d|%s", id, strings.Repeat("x", 43)) }
	wantRefusal(t, send(token, neighbor), nil)
	for i := range 3 {
		wantRefusal(t, send(guess(100+i), guesser), errAPITokenUnknown)
	}
	asked := ledger.asked.Load()
	for i := range 20 {
		wantCode(t, send(guess(200+i), guesser), problem.RateLimited)
	}
	wantCode(t, send("no token", guesser), problem.RateLimited)
	assert.Equal(t, ledger.asked.Load()-asked, 0, "lookups")
	wantRefusal(t, send(token, neighbor), nil) // its check has expired, and is made again
	wantCode(t, send("7|"+strings.Repeat("x", 43), guesser), problem.RateLimited)
	wantRefusal(t, send(guess(300), "192.0.2.2"), errAPITokenUnknown)
	_, _, err := tokens.Identify(cartRequest(), guesser)
	wantRefusal(t, err, errAPITokenMissing)
}
