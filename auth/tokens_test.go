package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

func TestNewCartToken_IsValidAndDependsOnlyOnItsSource(t *testing.T) {
	t.Parallel()
	token := must(NewCartToken(bytes.NewReader(bytes.Repeat([]byte{0xfb}, 16))))
	assert.Equal(t, token.Reveal(), "-_v7-_v7-_v7-_v7-_v7-w", "token.Reveal()")
	_, ok := ParseCartToken(token.Reveal())
	assert.That(t, ok, "a new token is not valid")
	other, _ := NewCartToken(rand.Reader)
	assert.That(t, other != token, "two sources gave the same token")
}

func TestNewCartToken_RefusesAShortSource(t *testing.T) {
	t.Parallel()
	broken := errors.New("no entropy")
	token, err := NewCartToken(iotest.ErrReader(broken))
	assert.That(t, errors.Is(err, broken) && token == "", "got %q, %v, want the source's error", token.Reveal(), err)
	_, err = NewCartToken(strings.NewReader("fifteen letters"))
	assert.That(t, errors.Is(err, io.ErrUnexpectedEOF), "got %v, want %v", err, io.ErrUnexpectedEOF)
}

func TestCartToken_Digest(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte(guestToken))
	want := base64.RawURLEncoding.EncodeToString(sum[:16])
	got := CartToken(guestToken).Digest()
	assert.That(t, got == want && len(got) == 22, "got %s, want %s", got, want)
}

func TestCartToken_IsNeverPrinted(t *testing.T) {
	t.Parallel()
	token := CartToken(guestToken)
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&log, nil), slog.NewTextHandler(&log, nil)} {
		slog.New(h).Info("seen", "token", token, "caller", Caller{Token: token}, "caller", &Caller{Token: token})
	}
	marshaled := must(json.Marshal([]any{token, Caller{Token: token}}))
	shown := map[string]string{"log": log.String(), "json": string(marshaled), "String": token.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		shown[verb] = fmt.Sprintf(verb+verb, token, Caller{Token: token})
	}
	for how, s := range shown {
		assert.That(t, !strings.Contains(s, guestToken) && !strings.Contains(strings.ToLower(s), fmt.Sprintf("%x", guestToken)),
			"%s shows the token: %s", how, s)
		assert.That(t, strings.Contains(s, hiddenCartToken), "%s does not say that a token was there: %s", how, s)
	}
}

func TestCustomerKey_PlainSubjectIsItsOwnKey(t *testing.T) {
	t.Parallel()
	for _, sub := range []string{"1", "1001", "a_B-9", strings.Repeat("x", 64)} {
		assert.Equal(t, CustomerKey(sub), sub, "CustomerKey(%q)", sub)
	}
}

func TestCustomerKey_DiffersForDifferentSubjects(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`\A([A-Za-z0-9_-]{1,64}|~[A-Za-z0-9_-]{22})\z`)
	subject := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9_~-]{0,70}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		a, b := subject.Draw(t, "a"), subject.Draw(t, "b")
		if rapid.Bool().Draw(t, "imitate") {
			b = CustomerKey(a)
		}
		if !form.MatchString(CustomerKey(a)) {
			t.Fatalf("CustomerKey(%q) = %q is not a safe key", a, CustomerKey(a))
		}
		if a != b && CustomerKey(a) == CustomerKey(b) {
			t.Fatalf("%q and %q share %q", a, b, CustomerKey(a))
		}
	})
}

func TestNewAPISecret_HasTheFormatAndTheHash(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`\A[A-Za-z0-9]{43}\z`)
	for range 2000 { // one in sixty begins with a zero
		secret, sum := NewAPISecret()
		assert.That(t, form.MatchString(secret) && sum == sha256.Sum256([]byte(secret)), "got %q, %x", secret, sum)
		id, parsed, ok := ParseAPIToken("7|" + secret)
		assert.That(t, ok && id == 7 && parsed == secret, "%s: does not parse back", secret)
	}
}

// FuzzParseTokens compares both parsers of opaque tokens with patterns of their forms.
func FuzzParseTokens(f *testing.F) {
	secret := strings.Repeat("aZ9x", 10)
	for _, s := range []string{
		"", "||", "null", "|" + secret, "1" + secret, "1|" + secret, "1|" + secret[1:], "1|" + strings.Repeat("a", 128), "1|" + strings.Repeat("a", 129),
		"9223372036854775807|" + secret, "9223372036854775808|" + secret, "0|" + secret, "01|" + secret, "-1|" + secret, "+1|" + secret,
		"1.0|" + secret, "1_0|" + secret, " 1|" + secret, "1|" + secret + "|", "1|" + secret + "-", "1|" + secret + " ",
		strings.Repeat("a", 21), strings.Repeat("a", 22), strings.Repeat("a", 128), strings.Repeat("a", 129), "azAZ09_-azAZ09_-azAZ09",
		guestToken, " " + guestToken, guestToken + "=", guestToken + "\n", guestToken + "\x00", guestToken + "}", guestToken + "é",
	} {
		f.Add(s)
	}
	apiForm, cartForm := regexp.MustCompile(`\A([1-9][0-9]*)\|([A-Za-z0-9]{40,128})\z`), regexp.MustCompile(`\A[A-Za-z0-9_-]{22,128}\z`)
	f.Fuzz(func(t *testing.T, s string) {
		var wantID int64
		var wantSecret string
		if m := apiForm.FindStringSubmatch(s); m != nil {
			if id, err := strconv.ParseInt(m[1], 10, 64); err == nil {
				wantID, wantSecret = id, m[2]
			}
		}
		id, secret, ok := ParseAPIToken(s)
		assert.That(t, id == wantID && secret == wantSecret && ok == (wantID != 0), "ParseAPIToken(%q) = %d, %q, %v; want %d, %q", s, id, secret, ok, wantID, wantSecret)
		var want CartToken
		if cartForm.MatchString(s) {
			want = CartToken(s)
		}
		token, ok := ParseCartToken(s)
		assert.That(t, token == want && ok == (want != ""), "ParseCartToken(%q) = %q, %v; want %q", s, token.Reveal(), ok, want.Reveal())
	})
}

// tokenLedger is a source that can change, be slow or be down, and counts lookups.
type tokenLedger struct {
	mu     sync.Mutex
	tokens map[int64]APIToken
	err    error
	delay  time.Duration
	asked  atomic.Int64
}

func (l *tokenLedger) APIToken(ctx context.Context, id int64) (APIToken, error) {
	l.asked.Add(1)
	l.mu.Lock()
	token, ok := l.tokens[id]
	err, delay := l.err, l.delay
	l.mu.Unlock()
	select { // the row was read, and the reply takes time
	case <-time.After(delay):
	case <-ctx.Done():
		return APIToken{}, ctx.Err()
	}
	switch {
	case err != nil:
		return APIToken{}, err
	case !ok:
		return APIToken{}, ErrNoAPIToken
	}
	return token, nil
}

func (l *tokenLedger) change(f func(*tokenLedger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

func (l *tokenLedger) revoke(id int64) {
	l.change(func(l *tokenLedger) {
		token, now := l.tokens[id], time.Now()
		token.RevokedAt = &now
		l.tokens[id] = token
	})
}

// newLedger returns a ledger, its token 7, and a function that identifies a token's sender.
func newLedger(t *testing.T) (ledger *tokenLedger, text string, identify func(token string) error) {
	t.Helper()
	secret, sum := NewAPISecret()
	ledger = &tokenLedger{tokens: map[int64]APIToken{
		7: {ID: 7, StoreID: 1, Hash: sum},
		8: {ID: 8, StoreID: 9, Hash: sum}, // its store does not exist
		9: {ID: 9, StoreID: 1, Hash: sum, RevokedAt: &time.Time{}},
	}}
	tokens := NewAPITokens(APITokensConfig{Source: ledger, Stores: testStores()})
	return ledger, "7|" + secret, func(token string) error {
		_, _, err := tokens.Identify(apiRequest(token), "")
		return err
	}
}

func apiRequest(token string) *http.Request { return cartRequest("Authorization", "Bearer "+token) }

func TestAPITokens_Identify(t *testing.T) {
	t.Parallel()
	ledger, token, _ := newLedger(t)
	secret := token[2:]
	changed := secret[:42] + "a"
	if changed == secret {
		changed = secret[:42] + "b"
	}
	customer := sign(newTestJWT(), 1, "c")

	for _, tt := range []struct {
		name    string
		headers []string
		refused *problem.Error
	}{
		{"valid", []string{"Authorization", "Bearer " + token}, nil},
		{"scheme in any case", []string{"Authorization", "bearer " + token}, nil},
		{"missing", nil, errAPITokenMissing},
		{"empty", []string{"Authorization", ""}, errAPITokenMissing},
		{"another scheme", []string{"Authorization", "Basic " + token}, errAPITokenMalformed},
		{"twice", []string{"Authorization", "Bearer " + token, "Authorization", "Bearer " + token}, errAPITokenMalformed},
		{"customer's JWT", []string{"Authorization", "Bearer " + customer}, errAPITokenMalformed},
		{"wrong secret", []string{"Authorization", "Bearer 7|" + changed}, errAPITokenSecret},
		{"longer secret", []string{"Authorization", "Bearer " + token + "0"}, errAPITokenSecret},
		{"unknown id", []string{"Authorization", "Bearer 6|" + secret}, errAPITokenUnknown},
		{"store is gone", []string{"Authorization", "Bearer 8|" + secret}, errAPITokenUnknown},
		{"revoked", []string{"Authorization", "Bearer 9|" + secret}, errAPITokenRevoked},
		{"public key is no token", []string{"X-Public-Key", "pk_one"}, errAPITokenMissing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tokens := NewAPITokens(APITokensConfig{Source: ledger, Stores: testStores()})
			store, id, err := tokens.Identify(cartRequest(tt.headers...), "")
			wantRefusal(t, err, tt.refused)
			assert.That(t, tt.refused != nil || store.ID == 1 && id == 7, "got store %v by token %d, want 1 by 7", store, id)
			assert.That(t, tt.refused == nil || store == nil && id == 0, "refused, but got store %v by token %d", store, id)
		})
	}
}

func TestAPITokens_ChecksAreCachedForTheTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ledger, token, identify := newLedger(t)
		for _, name := range []string{token, "7|" + strings.Repeat("x", 43), "5|" + token[2:]} {
			before := ledger.asked.Load()
			for range 3 {
				_ = identify(name)
			}
			n := ledger.asked.Load() - before
			assert.That(t, n <= 1, "%d lookups for one token at one time, want at most 1", n)
		}
		ledger.revoke(7)
		time.Sleep(499 * time.Millisecond)
		assert.Succeeds(t, identify(token), "a check of 499 ms ago was not used")
		time.Sleep(time.Millisecond)
		wantRefusal(t, identify(token), errAPITokenRevoked)
	})
}

func TestAPITokens_NewTokenIsValidAfterTheTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ledger, token, identify := newLedger(t)
		known := ledger.tokens[7]
		delete(ledger.tokens, 7)
		wantRefusal(t, identify(token), errAPITokenUnknown)

		ledger.change(func(l *tokenLedger) { l.tokens[7] = known })
		time.Sleep(500 * time.Millisecond)
		wantRefusal(t, identify(token), nil)
	})
}

// The TTL counts from the beginning of a lookup, and a lookup that began before a
// revocation is not used after the TTL.
func TestAPITokens_SlowSourceDoesNotDelayRevocation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ledger, token, identify := newLedger(t)
		ledger.delay = 1500 * time.Millisecond
		var early, late error
		var both sync.WaitGroup
		both.Go(func() { early = identify(token) })
		time.Sleep(100 * time.Millisecond)
		ledger.revoke(7)
		time.Sleep(900 * time.Millisecond)
		both.Go(func() { late = identify(token) })
		both.Wait()
		wantRefusal(t, early, nil)
		wantRefusal(t, late, errAPITokenRevoked)
	})
}

// Concurrent checks share a lookup, and the end of the request that began it does not fail others.
func TestAPITokens_ConcurrentChecksShareALookup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ledger, token, _ := newLedger(t)
		ledger.delay = 200 * time.Millisecond
		tokens := NewAPITokens(APITokensConfig{Source: ledger, Stores: testStores()})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var first error
		var failed atomic.Int64
		var all sync.WaitGroup
		all.Go(func() { _, _, first = tokens.Identify(apiRequest(token).WithContext(ctx), "") })
		synctest.Wait()
		for range 50 {
			all.Go(func() {
				if _, _, err := tokens.Identify(apiRequest(token), ""); err != nil {
					failed.Add(1)
				}
			})
		}
		all.Wait()
		refused := wantCode(t, first, "unavailable")
		assert.That(t, errors.Is(refused, context.DeadlineExceeded), "got %v, want the deadline", refused)
		assert.That(t, failed.Load() == 0 && ledger.asked.Load() == 1,
			"%d of 50 failed after %d lookups, want 0 after 1", failed.Load(), ledger.asked.Load())
	})
}

func TestAPITokens_UnreachableSourceIsUnavailableAndNotCached(t *testing.T) {
	t.Parallel()
	ledger, token, identify := newLedger(t)
	down := errors.New("connection refused")
	ledger.change(func(l *tokenLedger) { l.err = down })
	refused := wantCode(t, identify(token), "unavailable")
	assert.That(t, errors.Is(refused, down) && !strings.Contains(refused.Error(), token[2:]),
		"got %v, want the source's error and no secret", refused)
	ledger.change(func(l *tokenLedger) { l.err = nil })
	wantRefusal(t, identify(token), nil)

	tokens := NewAPITokens(APITokensConfig{Source: ledger, Stores: brokenStores{down}})
	_, _, err := tokens.Identify(apiRequest(token), "")
	wantCode(t, err, "unavailable")
}

func TestAPITokens_UnresponsiveSourceTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ledger, token, identify := newLedger(t)
		ledger.delay = time.Hour
		began := time.Now()
		wantCode(t, identify(token), "unavailable")
		assert.Equal(t, time.Since(began), apiTokenTimeout, "took")
	})
}

func TestAPITokens_GuessingDoesNotFillMemory(t *testing.T) {
	t.Parallel()
	tokens := NewAPITokens(APITokensConfig{Source: MemoryAPITokens{}, Stores: testStores()})
	secret := strings.Repeat("x", 43)
	for id := range 3 * maxAPITokens {
		_, _, err := tokens.Identify(apiRequest(fmt.Sprintf("%d|%s", id+1, secret)), "")
		wantRefusal(t, err, errAPITokenUnknown)
	}
	assert.Equal(t, tokens.checks.Len(), maxAPITokens, "checks are cached")
}
