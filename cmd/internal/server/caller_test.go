package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/auth"
	"commerce/cart/money"
	"commerce/cmd/internal/server"
	"commerce/deploy/sample"
)

// openMall is a service with two stores. other sells product 21.
func openMall(t testing.TB, defaultStore func(one, other int64) int64) (one, other *shop) {
	t.Helper()
	second := *sample.Stores()[1]
	second.ID = nextStore()
	second.PublicKeys = []string{"pk_other_" + strconv.FormatInt(second.ID, 10)}
	one = openShop(t, embeddedRedis(t), func(p *server.Parts) {
		first, err := p.Stores.Sole(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.Stores = auth.NewMemoryStores(money.Known, first, &second)
		if defaultStore != nil {
			p.DefaultStore = defaultStore(first.ID, second.ID)
		}
	})
	for _, p := range sample.Products()[2] {
		one.Catalog.Put(second.ID, p)
	}
	beside := *one
	beside.ID, beside.Key, beside.Store = second.ID, second.PublicKeys[0], &second
	return one, &beside
}

func TestStore_ComesFromKeyThenTokenThenDefault(t *testing.T) {
	t.Parallel()
	noDefault, _ := openMall(t, nil)
	_, byDefault := openMall(t, func(_, other int64) int64 { return other })
	sole := openShop(t, embeddedRedis(t))
	gone, _ := openMall(t, func(one, other int64) int64 { return one + other })
	nameless := func(s *shop) *shopper {
		keyless := *s
		keyless.Key = ""
		return keyless.guest(t)
	}

	noDefault.guest(t).ok("GET", "/cart", "")
	a := nameless(noDefault).refused(400, "store_required", "GET", "/cart", "")
	if len(a.Body.Errors["X-Public-Key"]) == 0 {
		t.Errorf("names %v", a.Body.Errors)
	}
	nameless(gone).refused(400, "store_required", "POST", "/cart/add", `{"product_id":1}`)
	nameless(sole).add(`{"product_id":1}`)
	nameless(byDefault).add(`{"product_id":21}`)
	byDefault.guest(t).add(`{"product_id":21}`)

	c := nameless(noDefault)
	c.JWT = noDefault.token(t, "1001")
	c.add(`{"product_id":1}`)
	noDefault.customer(t, "1001").wantLines("1×1")

	for _, key := range []string{"pk_nobody", "pk demo", "'; drop table stores; --", strings.Repeat("k", 300), "pk_\xff", "*"} {
		a := noDefault.guest(t).refused(400, "store_unknown", "GET", "/cart", "", "X-Public-Key", key)
		if len(a.Body.Errors["X-Public-Key"]) == 0 {
			t.Errorf("%s: names %v", key, a.Body.Errors)
		}
	}
}

func TestStore_KeepsItsCartsApart(t *testing.T) {
	t.Parallel()
	one, other := openMall(t, nil)
	guest := one.guest(t)
	guest.add(`{"product_id":1}`)
	there := other.guest(t)
	there.Token = guest.Token
	there.wantLines("")
	there.refused(404, "product_not_found", "POST", "/cart/add", `{"product_id":1}`)
	if got := there.add(`{"product_id":21}`).Body.Data; got.Currency != "USD" {
		t.Errorf("currency %s", got.Currency)
	}
	guest.wantLines("1×1")

	one.customer(t, "1001").add(`{"product_id":1}`)
	other.customer(t, "1001").wantLines("")

	stranger := other.customer(t, "1001")
	stranger.shop = one
	a := stranger.refused(401, "unauthenticated", "GET", "/cart", "")
	if len(a.Body.Errors["Authorization"]) == 0 || a.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("names %v, %v", a.Body.Errors, a.Header)
	}
}

func TestCustomer_TokenWithoutStoreIsForTheDefaultStoreOnly(t *testing.T) {
	t.Parallel()
	_, byDefault := openMall(t, func(_, other int64) int64 { return other })
	storeless, err := byDefault.JWT.Sign(0, "1001", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := byDefault.guest(t)
	c.JWT = storeless
	c.add(`{"product_id":21}`)
	byDefault.customer(t, "1001").wantLines("21×1")

	one, _ := openMall(t, func(_, other int64) int64 { return other })
	elsewhere := one.guest(t)
	elsewhere.JWT = storeless
	elsewhere.refused(401, "unauthenticated", "GET", "/cart", "")

	homeless, _ := openMall(t, nil)
	for _, key := range []string{homeless.Key, ""} {
		s := *homeless
		s.Key = key
		c := s.guest(t)
		c.JWT = storeless
		c.refused(401, "unauthenticated", "GET", "/cart", "")
	}
}

func TestCustomer_NeverGetsACartToken(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	c := s.customer(t, "1001")
	for _, call := range [][3]string{
		{"GET", "/cart"},
		{"POST", "/cart/add", `{"product_id":1}`},
		{"GET", "/cart/count"},
		{"GET", "/cart/summary"},
		{"PATCH", "/cart/items/1", `{"quantity":2}`},
		{"DELETE", "/cart/items/1"},
		{"DELETE", "/cart/clear"},
	} {
		for _, guest := range []string{"", "too-short", strings.Repeat("g", 22)} {
			if call[0] == "DELETE" || call[0] == "PATCH" {
				c.add(`{"product_id":1}`)
			}
			a := c.ok(call[0], call[1], call[2], "X-Cart-Token", guest)
			if a.Body.Data.CartToken != nil || a.Header.Get("X-Cart-Token") != "" {
				t.Errorf("%s %s: %s", call[0], call[1], a.Raw)
			}
		}
	}
	if a := c.refused(400, "cart_invalid", "GET", "/cart/validate", ""); a.Header.Get("X-Cart-Token") != "" {
		t.Error("validate issued a token")
	}
}

// claimsOf returns the claims of a valid token with edits, as name, value, …; a nil value
// removes a claim.
func (s *shop) claimsOf(edits ...any) jwt.MapClaims {
	claims := jwt.MapClaims{"sub": "1001", "store_id": s.ID, "exp": time.Now().Add(time.Hour).Unix()}
	for i := 0; i+1 < len(edits); i += 2 {
		claims[edits[i].(string)] = edits[i+1]
		if edits[i+1] == nil {
			delete(claims, edits[i].(string))
		}
	}
	return claims
}

func signed(t testing.TB, method jwt.SigningMethod, key any, claims jwt.Claims, header ...any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	for i := 0; i+1 < len(header); i += 2 {
		token.Header[header[i].(string)] = header[i+1]
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCustomer_TokenIsRefused(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	hs := func(edits ...any) string {
		return "Bearer " + signed(t, jwt.SigningMethodHS256, []byte(jwtSecret), s.claimsOf(edits...))
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := hs()
	head, rest, _ := strings.Cut(strings.TrimPrefix(good, "Bearer "), ".")
	payload, signature, _ := strings.Cut(rest, ".")
	encoded := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	now := time.Now()

	refused := map[string]string{
		"none":                     "Bearer " + signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, s.claimsOf()),
		"None, with a signature":   "Bearer " + encoded(`{"alg":"None","typ":"JWT"}`) + "." + payload + "." + signature,
		"no algorithm":             "Bearer " + encoded(`{"typ":"JWT"}`) + "." + payload + "." + signature,
		"signature cut off":        "Bearer " + head + "." + payload + ".",
		"signature missing":        "Bearer " + head + "." + payload,
		"one part more":            good + ".x",
		"other payload":            "Bearer " + head + "." + encoded(`{"sub":"1002","exp":9999999999}`) + "." + signature,
		"other secret":             "Bearer " + signed(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), s.claimsOf()),
		"empty secret":             "Bearer " + signed(t, jwt.SigningMethodHS256, []byte{}, s.claimsOf()),
		"HS256 by an RSA key":      "Bearer " + signed(t, jwt.SigningMethodHS256, public, s.claimsOf()),
		"HS384":                    "Bearer " + signed(t, jwt.SigningMethodHS384, []byte(jwtSecret), s.claimsOf()),
		"HS512":                    "Bearer " + signed(t, jwt.SigningMethodHS512, []byte(jwtSecret), s.claimsOf()),
		"RS256":                    "Bearer " + signed(t, jwt.SigningMethodRS256, rsaKey, s.claimsOf()),
		"a key of its own":         "Bearer " + signed(t, jwt.SigningMethodRS256, rsaKey, s.claimsOf(), "jku", "https://evil.example.com/keys", "jwk", map[string]any{"kty": "RSA"}),
		"critical extension":       "Bearer " + signed(t, jwt.SigningMethodHS256, []byte(jwtSecret), s.claimsOf(), "crit", []string{"b64"}, "b64", false),
		"another kind of token":    "Bearer " + signed(t, jwt.SigningMethodHS256, []byte(jwtSecret), s.claimsOf(), "typ", "logout+jwt"),
		"no exp":                   hs("exp", nil),
		"exp null":                 "Bearer " + signed(t, jwt.SigningMethodHS256, []byte(jwtSecret), jwt.MapClaims{"sub": "1001", "exp": nil}),
		"exp as text":              hs("exp", strconv.FormatInt(now.Add(time.Hour).Unix(), 10)),
		"expired":                  hs("exp", now.Add(-31*time.Second).Unix()),
		"expired in 1970":          hs("exp", 0),
		"nbf in a minute":          hs("nbf", now.Add(time.Minute).Unix()),
		"store of nobody":          hs("store_id", s.ID+1),
		"store as list":            hs("store_id", []int64{s.ID}),
		"store true":               hs("store_id", true),
		"store null":               hs("store_id", jwt.MapClaims(nil)),
		"store empty":              hs("store_id", ""),
		"store 0":                  hs("store_id", 0),
		"store negative":           hs("store_id", -s.ID),
		"store with half":          hs("store_id", float64(s.ID)+0.5),
		"store with a plus":        hs("store_id", "+"+strconv.FormatInt(s.ID, 10)),
		"store with a zero":        hs("store_id", "0"+strconv.FormatInt(s.ID, 10)),
		"store with a space":       hs("store_id", strconv.FormatInt(s.ID, 10)+" "),
		"store in hexadecimal":     hs("store_id", "0x"+strconv.FormatInt(s.ID, 16)),
		"store too large":          hs("store_id", "99999999999999999999"),
		"no sub":                   hs("sub", nil),
		"sub empty":                hs("sub", ""),
		"sub of 256":               hs("sub", strings.Repeat("c", 256)),
		"sub of 256 wide":          hs("sub", strings.Repeat("é", 256)),
		"sub as number":            hs("sub", 1001),
		"sub as list":              hs("sub", []string{"1001"}),
		"Basic alone":              "Basic",
		"no scheme":                strings.TrimPrefix(good, "Bearer "),
		"no token":                 "Bearer",
		"no token but a space":     "Bearer ",
		"empty":                    "",
		"a store's token":          "Bearer 1|" + strings.Repeat("s", 40),
		"two tokens":               good + ", " + good,
		"a token and a parameter":  good + " x=y",
		"9 KiB":                    "Bearer " + strings.Repeat("a", 9<<10),
		"dots":                     "Bearer ..",
		"not base64":               "Bearer !!!.???.***",
		"padded":                   good + "=",
		"payload that is no claim": "Bearer " + head + "." + encoded(`"x"`) + "." + signature,
	}
	s.customer(t, "1001").add(`{"product_id":1}`)
	guest := s.guest(t)
	before := guest.add(`{"product_id":1}`).Header.Get("ETag")
	for name, header := range refused {
		for _, call := range [][3]string{{"GET", "/cart"}, {"POST", "/cart/add", `{"product_id":1}`}} {
			a := guest.refused(401, "unauthenticated", call[0], call[1], call[2], "Authorization", header)
			if a.Header.Get("WWW-Authenticate") != "Bearer" || len(a.Body.Errors["Authorization"]) != 1 || a.Header.Get("X-Cart-Token") != "" {
				t.Errorf("%s: names %v, headers %v", name, a.Body.Errors, a.Header)
			}
		}
	}
	if after := guest.ok("GET", "/cart", "").Header.Get("ETag"); after != before {
		t.Error("a refused customer was served as a guest")
	}
	s.customer(t, "1001").wantLines("1×1")
	if log := s.Log.String(); strings.Contains(log, signature) || strings.Contains(log, payload) {
		t.Error("a token got into the log")
	}
}

func TestCustomer_TokenIsAccepted(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	now := time.Now()
	taken := map[string][]any{
		"as it should be":   nil,
		"store as text":     {"store_id", strconv.FormatInt(s.ID, 10)},
		"no store":          {"store_id", nil},
		"expired just now":  {"exp", now.Add(-20 * time.Second).Unix()},
		"valid in a moment": {"nbf", now.Add(20 * time.Second).Unix()},
		"exp with fraction": {"exp", float64(now.Add(time.Hour).Unix()) + 0.5},
		"ignored claims":    {"iss", "anyone", "aud", []string{"anything"}, "iat", now.Add(time.Hour).Unix(), "role", "admin"},
	}
	s.customer(t, "1001").add(`{"product_id":1}`)
	for name, edits := range taken {
		c := s.guest(t)
		c.JWT = signed(t, jwt.SigningMethodHS256, []byte(jwtSecret), s.claimsOf(edits...))
		if got := c.cart(); got.lines() != "1×1" {
			t.Errorf("%s: cart holds %q", name, got.lines())
		}
	}
	lower := s.guest(t).ok("GET", "/cart", "", "Authorization", "bearer "+s.token(t, "1001"))
	if lower.Body.Data.lines() != "1×1" {
		t.Error("the scheme's case matters")
	}
}

func TestCustomer_WithAnySubjectHasTheirOwnCart(t *testing.T) {
	onRealRedis(t, func(t *testing.T, s *shop) {
		subjects := []string{
			"1001", "c", "sara@example.com", "Sara@example.com", "a:b", "1:g:x", "{1:c:1001}", "}", "*", "a b", "é", "أحمد",
			strings.Repeat("c", 64), strings.Repeat("c", 65), strings.Repeat("c", 255), strings.Repeat("é", 255), "~x", "1001\n", "\x00", "../1001",
		}
		for i, sub := range subjects {
			s.customer(t, sub).add(`{"product_id":1,"qty":` + strconv.Itoa(i+1) + `}`)
		}
		for i, sub := range subjects {
			s.customer(t, sub).wantLines("1×" + strconv.Itoa(i+1))
		}
		form := regexp.MustCompile(`^cart:\{` + strconv.FormatInt(s.ID, 10) + `:c:([A-Za-z0-9_-]{1,64}|~[A-Za-z0-9_-]{22})\}$`)
		for _, key := range s.keys(t) {
			if !form.MatchString(key) {
				t.Errorf("Redis holds %s", key)
			}
		}
		if log := s.Log.String(); strings.Contains(strings.ToLower(log), "sara@") {
			t.Error("a customer's e-mail address is in the log")
		}
	})
}

func TestCustomer_IssuerAndAudienceAreCheckedIfConfigured(t *testing.T) {
	t.Parallel()
	tokens, err := auth.NewJWT(auth.JWTConfig{
		Secret: []byte(jwtSecret), Issuer: "https://login.example.com", Audience: "commerce",
	})
	if err != nil {
		t.Fatal(err)
	}
	s := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.JWT = tokens })
	for name, tt := range map[string]struct {
		edits []any
		ok    bool
	}{
		"both right":       {[]any{"iss", "https://login.example.com", "aud", "commerce"}, true},
		"one of audiences": {[]any{"iss", "https://login.example.com", "aud", []string{"shop", "commerce"}}, true},
		"neither":          {nil, false},
		"other issuer":     {[]any{"iss", "https://login.example.com/", "aud", "commerce"}, false},
		"no issuer":        {[]any{"aud", "commerce"}, false},
		"other audience":   {[]any{"iss", "https://login.example.com", "aud", "Commerce"}, false},
		"no audience":      {[]any{"iss", "https://login.example.com"}, false},
		"empty audiences":  {[]any{"iss", "https://login.example.com", "aud", []string{}}, false},
	} {
		c := s.guest(t)
		c.JWT = signed(t, jwt.SigningMethodHS256, []byte(jwtSecret), s.claimsOf(tt.edits...))
		if a := c.send("GET", "/cart", ""); (a.Status == 200) != tt.ok {
			t.Errorf("%s: got %d", name, a.Status)
		} else if !tt.ok && a.Body.Code != "unauthenticated" {
			t.Errorf("%s: got %s", name, a.Body.Code)
		}
	}
}

func TestCustomer_IsUnknownWithoutASecret(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.JWT = nil })
	s.customer(t, "1001").refused(401, "unauthenticated", "GET", "/cart", "")
	s.guest(t).ok("GET", "/cart", "")
}
