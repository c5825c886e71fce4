package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/deploy/assert"
)

func anyCurrency(string) bool { return true }

func testStores() *MemoryStores {
	return NewMemoryStores(anyCurrency,
		&store.Store{ID: 1, PublicKeys: []string{"pk_one", "pk_one_old"}, Currency: "SAR"},
		&store.Store{ID: 2, PublicKeys: []string{"pk_two"}, Currency: "USD"},
	)
}

func newTestJWT() *JWT { return must(NewJWT(JWTConfig{Secret: testSecret, Now: atNoon})) }

func sign(j *JWT, store int64, customer string) string {
	return must(j.Sign(store, customer, time.Hour))
}

// cartRequest returns a request with headers, given as name, value, name, value, …
func cartRequest(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/cart", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

const guestToken = "AAAAAAAAAAAAAAAAAAABCD"

func TestCartCallers_Identify(t *testing.T) {
	t.Parallel()
	tokens := newTestJWT()
	bearerOf := func(store int64, customer string) string { return "Bearer " + sign(tokens, store, customer) }
	const auth, key, cart = "Authorization", "X-Public-Key", "X-Cart-Token"

	several, one := testStores(), NewMemoryStores(anyCurrency, &store.Store{ID: 2, PublicKeys: []string{"pk_two"}, Currency: "USD"})
	tests := []struct {
		name         string
		stores       StoreDirectory // nil: several
		defaultStore int64
		noCustomers  bool
		headers      []string
		store        int64
		customer     string
		token        CartToken
		refused      *problem.Error
	}{
		{name: "guest names store by key", headers: []string{key, "pk_two"}, store: 2},
		{name: "second key of a store", headers: []string{key, "pk_one_old"}, store: 1},
		{name: "key goes before default", defaultStore: 1, headers: []string{key, "pk_two"}, store: 2},
		{name: "default store", defaultStore: 2, store: 2},
		{name: "sole store", stores: one, store: 2},
		{name: "no store named, several", refused: errStoreRequired},
		{name: "no store named, none", stores: NewMemoryStores(anyCurrency), refused: errStoreRequired},
		{name: "default store is gone", defaultStore: 9, refused: errStoreRequired},
		{name: "unknown key", defaultStore: 1, headers: []string{key, "pk_nobody"}, refused: errStoreUnknown},
		{name: "key that is not text", headers: []string{key, "pk_\xff"}, refused: errStoreUnknown},
		{name: "key too long", headers: []string{key, strings.Repeat("k", 256)}, refused: errStoreUnknown},
		{name: "empty key is absent", defaultStore: 1, headers: []string{key, ""}, store: 1},
		{name: "same key twice", headers: []string{key, "pk_two", key, "pk_two"}, store: 2},
		{name: "empty key and a key", headers: []string{key, "", key, "pk_two"}, store: 2},
		{name: "two keys", headers: []string{key, "pk_one", key, "pk_two"}, refused: errPublicKeyRepeated},
		{name: "two keys of one store", headers: []string{key, "pk_one", key, "pk_one_old"}, refused: errPublicKeyRepeated},

		{name: "customer of the token's store", headers: []string{auth, bearerOf(2, "c")}, store: 2, customer: "c"},
		{name: "token's store goes before default", defaultStore: 1, headers: []string{auth, bearerOf(2, "c")}, store: 2, customer: "c"},
		{name: "key and token agree", headers: []string{auth, bearerOf(2, "c"), key, "pk_two"}, store: 2, customer: "c"},
		{name: "key and token disagree", headers: []string{auth, bearerOf(2, "c"), key, "pk_one"}, refused: errOtherStore},
		{name: "token of an unknown store", headers: []string{auth, bearerOf(9, "c")}, refused: errTokenStoreUnknown},
		{name: "token of an unknown store with a key", headers: []string{auth, bearerOf(9, "c"), key, "pk_one"}, refused: errOtherStore},
		{name: "valid token, unknown key", headers: []string{auth, bearerOf(1, "c"), key, "pk_nobody"}, refused: errStoreUnknown},
		{name: "valid token, two keys", headers: []string{auth, bearerOf(1, "c"), key, "pk_one", key, "pk_two"}, refused: errPublicKeyRepeated},
		{name: "token without store is the default's", defaultStore: 2, headers: []string{auth, bearerOf(0, "c")}, store: 2, customer: "c"},
		{name: "token without store, default's key", defaultStore: 2, headers: []string{auth, bearerOf(0, "c"), key, "pk_two"}, store: 2, customer: "c"},
		{name: "token without store, another's key", defaultStore: 2, headers: []string{auth, bearerOf(0, "c"), key, "pk_one"}, refused: errOtherStore},
		{name: "token without store is the sole store's", stores: one, headers: []string{auth, bearerOf(0, "c"), key, "pk_two"}, store: 2, customer: "c"},
		{name: "token without store, several stores", headers: []string{auth, bearerOf(0, "c")}, refused: errTokenNamesNoStore},
		{name: "token without store, several stores, key", headers: []string{auth, bearerOf(0, "c"), key, "pk_one"}, refused: errTokenNamesNoStore},

		{name: "scheme in any case", headers: []string{auth, "bEARER" + bearerOf(1, "c")[6:]}, store: 1, customer: "c"},
		{name: "several spaces", headers: []string{auth, "Bearer  " + sign(tokens, 1, "c")}, store: 1, customer: "c"},
		{name: "empty Authorization", defaultStore: 1, headers: []string{auth, ""}, store: 1},
		{name: "empty Authorization twice", defaultStore: 1, headers: []string{auth, "", auth, ""}, refused: errBearerMalformed},
		{name: "scheme alone", defaultStore: 1, headers: []string{auth, "Bearer"}, refused: errBearerMalformed},
		{name: "scheme and a space", defaultStore: 1, headers: []string{auth, "Bearer "}, refused: errBearerMalformed},
		{name: "no scheme", headers: []string{auth, sign(tokens, 1, "c")}, refused: errBearerMalformed},
		{name: "another scheme", defaultStore: 1, headers: []string{auth, "Basic " + sign(tokens, 1, "c")}, store: 1},
		{name: "another scheme and Bearer", headers: []string{auth, "Basic eDp5", auth, bearerOf(1, "c")}, refused: errBearerMalformed},
		{name: "tab for a space", headers: []string{auth, "Bearer\t" + sign(tokens, 1, "c")}, refused: errBearerMalformed},
		{name: "the same header twice", headers: []string{auth, bearerOf(1, "c"), auth, bearerOf(1, "c")}, refused: errBearerMalformed},
		{name: "two tokens in one header", headers: []string{auth, bearerOf(1, "c") + ", " + bearerOf(1, "c")}, refused: errTokenMalformed},
		{name: "API token", headers: []string{auth, "Bearer 1|" + strings.Repeat("a", 43)}, refused: errTokenMalformed},
		{name: "invalid token and unknown key", headers: []string{auth, "Bearer x", key, "pk_nobody"}, refused: errTokenMalformed},
		{name: "invalid token and two keys", headers: []string{auth, "Bearer x", key, "pk_one", key, "pk_two"}, refused: errTokenMalformed},
		{name: "invalid token with a cart token", defaultStore: 1, headers: []string{auth, "Bearer x", cart, guestToken}, refused: errTokenMalformed},
		{name: "no customers here", defaultStore: 1, noCustomers: true, headers: []string{auth, bearerOf(1, "c")}, refused: errNoCustomers},

		{name: "cart token", defaultStore: 1, headers: []string{cart, guestToken}, store: 1, token: guestToken},
		{name: "customer with a cart token", headers: []string{auth, bearerOf(1, "c"), cart, guestToken}, store: 1, customer: "c", token: guestToken},
		{name: "malformed cart token is none", defaultStore: 1, headers: []string{cart, "null"}, store: 1},
		{name: "empty cart token is none", defaultStore: 1, headers: []string{cart, ""}, store: 1},
		{name: "advertising ID that was refused is none", defaultStore: 1, headers: []string{cart, "00000000-0000-0000-0000-000000000000"}, store: 1},
		{name: "dashes are none", defaultStore: 1, headers: []string{auth, bearerOf(1, "c"), cart, strings.Repeat("-", 22)}, store: 1, customer: "c"},
		{name: "three distinct characters are none", defaultStore: 1, headers: []string{cart, strings.Repeat("ab_", 42)}, store: 1},
		{name: "four distinct characters", defaultStore: 1, headers: []string{cart, "0ab_000000000000000000"}, store: 1, token: "0ab_000000000000000000"},
		{name: "repeated cart token is none", defaultStore: 1, headers: []string{cart, guestToken, cart, guestToken}, store: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Stores: several, Tokens: tokens, DefaultStore: tt.defaultStore}
			if tt.stores != nil {
				cfg.Stores = tt.stores
			}
			if tt.noCustomers {
				cfg.Tokens = nil
			}
			caller, err := NewCartCallers(cfg).Identify(cartRequest(tt.headers...), "")
			wantRefusal(t, err, tt.refused)
			if tt.refused != nil {
				assert.That(t, caller == (Caller{}), "refused caller is %+v, want none", caller)
				return
			}
			assert.That(t, caller.Store.ID == tt.store && caller.Customer == tt.customer && caller.Token == tt.token,
				"got store %d, customer %q, token %q; want %d, %q, %q",
				caller.Store.ID, caller.Customer, caller.Token.Reveal(), tt.store, tt.customer, tt.token.Reveal())
		})
	}
}

type brokenStores struct{ err error }

func (b brokenStores) ByID(context.Context, int64) (*store.Store, error) { return nil, b.err }

func (b brokenStores) ByPublicKey(context.Context, string) (*store.Store, error) { return nil, b.err }

func (b brokenStores) ByHost(context.Context, string) (*store.Store, error) { return nil, b.err }

func (b brokenStores) Sole(context.Context) (*store.Store, error) { return nil, b.err }

func (b brokenStores) APIToken(context.Context, int64) (APIToken, error) { return APIToken{}, b.err }

func TestCartCallers_UnreachableDirectoryIsUnavailable(t *testing.T) {
	t.Parallel()
	tokens, down := newTestJWT(), errors.New("connection refused")
	for name, headers := range map[string][]string{
		"by key":                    {"X-Public-Key", "pk_one"},
		"by token":                  {"Authorization", "Bearer " + sign(tokens, 1, "c")},
		"by default":                {},
		"by default for a customer": {"Authorization", "Bearer " + sign(tokens, 0, "c")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			callers := NewCartCallers(Config{Stores: brokenStores{down}, Tokens: tokens})
			_, err := callers.Identify(cartRequest(headers...), "")
			if refused := wantCode(t, err, "unavailable"); !errors.Is(refused, down) || refused.Faults[0].Member != "" {
				t.Errorf("got %v of member %q, want the directory's error and no member", refused, refused.Faults[0].Member)
			}
		})
	}
}

func TestCartCallers_InvalidBearerIsRefusedWithoutADirectory(t *testing.T) {
	t.Parallel()
	callers := NewCartCallers(Config{Stores: brokenStores{errors.New("down")}, Tokens: newTestJWT()})
	_, err := callers.Identify(cartRequest("Authorization", "Bearer x.y.z"), "")
	wantCode(t, err, "unauthenticated")
}

func TestCartCallers_GuestDoesNotAllocate(t *testing.T) {
	callers := NewCartCallers(Config{Stores: testStores(), Tokens: newTestJWT()})
	r := cartRequest("X-Public-Key", "pk_one", "X-Cart-Token", guestToken)
	assert.Equal(t, testing.AllocsPerRun(100, func() { _, _ = callers.Identify(r, "") }), 0, "allocations per request")
}

func TestMemoryStores_KeepTheirOwnCopy(t *testing.T) {
	t.Parallel()
	given := &store.Store{ID: 1, Name: "before", PublicKeys: []string{"pk"}, Currency: "SAR", PaymentMethods: []store.PaymentMethod{{ID: "card"}}}
	stores := NewMemoryStores(anyCurrency, given)
	given.Name, given.PublicKeys[0], given.PaymentMethods[0].ID = "after", "other", "cash"

	got := assert.Must(stores.ByPublicKey(t.Context(), "pk"))(t)
	want := &store.Store{ID: 1, Name: "before", PublicKeys: []string{"pk"}, Currency: "SAR", PaymentMethods: []store.PaymentMethod{{ID: "card"}}}
	assert.Equal(t, got, want, "store changed")
}

func TestMemoryStores_SoleNeedsExactlyOne(t *testing.T) {
	t.Parallel()
	one, two := &store.Store{ID: 1, Currency: "SAR"}, &store.Store{ID: 2, Currency: "SAR"}
	for _, tt := range []struct {
		stores []*store.Store
		want   int64 // 0: none
	}{{nil, 0}, {[]*store.Store{one}, 1}, {[]*store.Store{one, one}, 1}, {[]*store.Store{one, two}, 0}} {
		store, err := NewMemoryStores(anyCurrency, tt.stores...).Sole(t.Context())
		switch {
		case tt.want == 0 && !errors.Is(err, ErrNoStore):
			t.Errorf("%d stores: got %v, %v, want ErrNoStore", len(tt.stores), store, err)
		case tt.want != 0 && (err != nil || store.ID != tt.want):
			t.Errorf("%d stores: got %v, %v, want store %d", len(tt.stores), store, err, tt.want)
		}
	}
}

func BenchmarkCartCallers(b *testing.B) {
	tokens := newTestJWT()
	callers := NewCartCallers(Config{Stores: testStores(), Tokens: tokens})
	for name, r := range map[string]*http.Request{
		"guest":    cartRequest("X-Public-Key", "pk_one", "X-Cart-Token", guestToken),
		"customer": cartRequest("X-Public-Key", "pk_one", "Authorization", "Bearer "+sign(tokens, 1, "1001")),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				assert.Must(callers.Identify(r, ""))(b)
			}
		})
	}
}

// TestTexts in cmd/commerce checks that no language is missing.
func TestErrors_AreSentencesInTheirLanguage(t *testing.T) {
	t.Parallel()
	texts := regexp.MustCompile(`locale\.(En|Ar): "(.*)",`).FindAllStringSubmatch(string(must(os.ReadFile("errors.go"))), -1)
	for _, text := range texts {
		isArabic := strings.ContainsFunc(text[2], func(r rune) bool { return unicode.Is(unicode.Arabic, r) })
		assert.That(t, isArabic == (text[1] == "Ar") && strings.HasSuffix(text[2], "."),
			"not a sentence in %s: %q", text[1], text[2])
	}
	assert.That(t, len(texts) >= 40, "found %d texts: this test does not read all", len(texts))
}

func TestErrors_HaveTheKindsOfRefusedCredentials(t *testing.T) {
	t.Parallel()
	var used []string
	for _, call := range regexp.MustCompile(`unauthenticated\("(\w+)"`).FindAllStringSubmatch(string(must(os.ReadFile("errors.go"))), -1) {
		used = append(used, call[1])
	}
	slices.Sort(used)
	listed := slices.Sorted(slices.Values(CredentialKinds()))
	assert.That(t, slices.Equal(slices.Compact(used), listed), "kinds %v, listed are %v", used, listed)
	e := unauthenticated("type", nil)
	assert.That(t, e.Code == "unauthenticated" && e.Kind == "type" && e.Faults[0].Member == "Authorization", "got %+v", e)
}

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
