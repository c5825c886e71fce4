package auth

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

type jwk = map[string]any

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func publish(kid string, private crypto.Signer) jwk {
	switch public := private.Public().(type) {
	case *rsa.PublicKey:
		return jwk{"kty": "RSA", "kid": kid, "n": b64(public.N.Bytes()), "e": b64(big.NewInt(int64(public.E)).Bytes())}
	case *ecdsa.PublicKey:
		point := must(public.Bytes())
		size := len(point) / 2
		return jwk{"kty": "EC", "kid": kid, "crv": public.Params().Name, "x": b64(point[1 : 1+size]), "y": b64(point[1+size:])}
	case ed25519.PublicKey:
		return jwk{"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": b64(public)}
	}
	panic(fmt.Sprintf("no JWK for a %T", private))
}

func with(key jwk, member string, value any) jwk {
	changed := maps.Clone(key)
	changed[member] = value
	return changed
}

func keySetText(keys ...jwk) string {
	return string(must(json.Marshal(map[string]any{"keys": keys})))
}

func newEd25519() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return must(key, err)
}

func newECDSA(curve elliptic.Curve) *ecdsa.PrivateKey {
	return must(ecdsa.GenerateKey(curve, rand.Reader))
}

func newRSA(bits int) *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, bits)) }

// signedBy returns a token that is valid for decades. A nil kid leaves it out.
func signedBy(method jwt.SigningMethod, key, kid any) string {
	token := jwt.NewWithClaims(method, jwt.MapClaims{"sub": "c", "store_id": 1, "exp": 4102444800})
	if kid != nil {
		token.Header["kid"] = kid
	}
	return must(token.SignedString(key))
}

// issuer is an issuer's server without a network. It counts requests.
type issuer struct {
	key    ed25519.PrivateKey
	mu     sync.Mutex
	body   string
	err    error
	delay  time.Duration
	served atomic.Int64
}

func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	i.served.Add(1)
	i.mu.Lock()
	body, err, delay := i.body, i.err, i.delay
	i.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (i *issuer) publish(keys ...jwk) {
	i.change(func() { i.body, i.err, i.delay = keySetText(keys...), nil, 0 })
}

func (i *issuer) publishOwn(ids ...string) {
	var keys []jwk
	for _, id := range ids {
		keys = append(keys, publish(id, i.key))
	}
	i.publish(keys...)
}

func (i *issuer) fail() { i.change(func() { i.err = errors.New("connection refused") }) }

func (i *issuer) slow(delay time.Duration) { i.change(func() { i.delay = delay }) }

func (i *issuer) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

func (i *issuer) wantFetches(t *testing.T, want int64) {
	t.Helper()
	assert.Equal(t, i.served.Load(), want, "fetches")
}

func verifierOf(cfg JWKSConfig) *JWT {
	if cfg.URL != "" { // of a real server
		cfg.Wait = ephemeral.Patience(5 * time.Second)
	}
	cfg.URL = cmp.Or(cfg.URL, "https://issuer.example/jwks?key=hush")
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return must(NewJWT(JWTConfig{JWKS: must(NewJWKS(cfg)), Secret: testSecret}))
}

// published returns an issuer that publishes its key with the ID "a", and a function that
// verifies a token of that key with any ID.
func published(t testing.TB, cfg JWKSConfig) (*issuer, func(kid string) error) {
	t.Helper()
	server := &issuer{key: newEd25519()}
	server.publishOwn("a")
	cfg.Transport = server
	j := verifierOf(cfg)
	return server, func(kid string) error {
		_, err := j.Verify(t.Context(), signedBy(jwt.SigningMethodEdDSA, server.key, kid))
		return err
	}
}

// withIssuer runs a test in a bubble, with what published returns.
func withIssuer(t *testing.T, test func(t *testing.T, server *issuer, verify func(kid string) error)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, verify := published(t, JWKSConfig{})
		test(t, server, verify)
	})
}

func TestJWKS_EachAlgorithmNeedsItsOwnKindOfKey(t *testing.T) {
	t.Parallel()
	edKey, ecKey, rsaKey := newEd25519(), newECDSA(elliptic.P256()), newRSA(2048)
	other, p384 := newEd25519(), newECDSA(elliptic.P384())
	server := &issuer{}
	server.publish(publish("ed", edKey), publish("ec", ecKey), publish("rsa", rsaKey))
	j := verifierOf(JWKSConfig{Transport: server, Wait: ephemeral.Patience(5 * time.Second)})

	rsaPublic := rsaKey.PublicKey.N.Bytes()
	edPublic := edKey.Public().(ed25519.PublicKey)
	for _, tt := range []struct {
		name    string
		token   string
		refused *problem.Error
	}{
		{"EdDSA", signedBy(jwt.SigningMethodEdDSA, edKey, "ed"), nil},
		{"ES256", signedBy(jwt.SigningMethodES256, ecKey, "ec"), nil},
		{"RS256", signedBy(jwt.SigningMethodRS256, rsaKey, "rsa"), nil},
		{"EdDSA without kid", signedBy(jwt.SigningMethodEdDSA, edKey, nil), nil},
		{"EdDSA with an empty kid", signedBy(jwt.SigningMethodEdDSA, edKey, ""), nil},

		{"another's signature", signedBy(jwt.SigningMethodEdDSA, other, "ed"), errTokenSignature},
		{"another's signature without kid", signedBy(jwt.SigningMethodEdDSA, other, nil), errTokenSignature},
		{"EdDSA under the kid of an EC key", signedBy(jwt.SigningMethodEdDSA, edKey, "ec"), errTokenKeyUnknown},
		{"ES256 under the kid of an RSA key", signedBy(jwt.SigningMethodES256, ecKey, "rsa"), errTokenKeyUnknown},
		{"RS256 under the kid of an EdDSA key", signedBy(jwt.SigningMethodRS256, rsaKey, "ed"), errTokenKeyUnknown},
		{"PS256", signedBy(jwt.SigningMethodPS256, rsaKey, "rsa"), errTokenSignature},
		{"RS512", signedBy(jwt.SigningMethodRS512, rsaKey, "rsa"), errTokenSignature},
		{"ES384", signedBy(jwt.SigningMethodES384, p384, "ec"), errTokenSignature},
		{"none", signedBy(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "ed"), errTokenSignature},
		{"HS256 with the service's secret", signedBy(jwt.SigningMethodHS256, testSecret, nil), errTokenSignature},
		{"HS256 with a public RSA key", signedBy(jwt.SigningMethodHS256, rsaPublic, "rsa"), errTokenSignature},
		{"HS256 with a public EdDSA key", signedBy(jwt.SigningMethodHS256, []byte(edPublic), "ed"), errTokenSignature},
		{"kid as a number", signedBy(jwt.SigningMethodEdDSA, edKey, 1), errTokenMalformed},
		{"kid null", withHeader(edKey, "kid", nil), errTokenMalformed},
		{"kid too long", signedBy(jwt.SigningMethodEdDSA, edKey, strings.Repeat("k", 256)), errTokenMalformed},
		{"critical extension", withHeader(edKey, "crit", []string{"exp"}), errTokenMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := j.Verify(t.Context(), tt.token)
			wantRefusal(t, err, tt.refused)
		})
	}
}

func withHeader(key ed25519.PrivateKey, name string, value any) string {
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"sub": "c", "exp": 4102444800})
	token.Header["kid"] = "ed"
	token.Header[name] = value
	return must(token.SignedString(key))
}

func TestJWKS_IgnoresKeysInATokensHeader(t *testing.T) {
	t.Parallel()
	var visits atomic.Int64
	evilKey, goodKey := newEd25519(), newEd25519()
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		visits.Add(1)
		fmt.Fprint(w, keySetText(publish("ed", evilKey)))
	}))
	t.Cleanup(evil.Close)
	server := &issuer{}
	server.publish(with(publish("ed", goodKey), "x5u", evil.URL))
	j := verifierOf(JWKSConfig{Transport: server, Wait: ephemeral.Patience(5 * time.Second)})

	for name, value := range map[string]any{
		"jku": evil.URL, "x5u": evil.URL, "jwk": publish("ed", evilKey),
		"x5c": []string{b64(evilKey.Public().(ed25519.PublicKey))},
	} {
		_, err := j.Verify(t.Context(), withHeader(evilKey, name, value))
		wantRefusal(t, err, errTokenSignature)
		_, err = j.Verify(t.Context(), withHeader(goodKey, name, value))
		assert.Succeeds(t, err, "%s makes a valid token invalid", name)
	}
	assert.That(t, visits.Load() == 0, "followed a token's URL %d times", visits.Load())
}

func TestParseKeys_AcceptsOnlySuitableKeys(t *testing.T) {
	t.Parallel()
	edKey, ecKey := newEd25519(), newECDSA(elliptic.P256())
	ed, ec := publish("k", edKey), publish("k", ecKey)
	rsa2048 := publish("k", newRSA(2048))
	offCurve := with(ec, "y", ec["x"])
	for _, tt := range []struct {
		name string
		key  jwk
		alg  string // "": not accepted
	}{
		{"Ed25519", ed, "EdDSA"},
		{"P-256", ec, "ES256"},
		{"RSA", rsa2048, "RS256"},
		{"use sig", with(ed, "use", "sig"), "EdDSA"},
		{"use enc", with(ed, "use", "enc"), ""},
		{"use unknown", with(ed, "use", "SIG"), ""},
		{"key_ops verify", with(ed, "key_ops", []string{"verify"}), "EdDSA"},
		{"key_ops encrypt", with(ed, "key_ops", []string{"encrypt"}), ""},
		{"alg fits", with(rsa2048, "alg", "RS256"), "RS256"},
		{"alg of the same family", with(rsa2048, "alg", "PS256"), ""},
		{"alg of another family", with(ec, "alg", "EdDSA"), ""},
		{"alg none", with(ed, "alg", "none"), ""},
		{"alg HS256", with(rsa2048, "alg", "HS256"), ""},
		{"kty of another family", with(ed, "kty", "EC"), ""},
		{"kty unknown", with(ed, "kty", "XX"), ""},
		{"kty missing", with(ed, "kty", ""), ""},
		{"secret", jwk{"kty": "oct", "kid": "k", "k": b64(testSecret), "alg": "HS256"}, ""},
		{"private half published", with(ed, "d", b64(edKey.Seed())), "EdDSA"},
		{"P-384", publish("k", newECDSA(elliptic.P384())), ""},
		{"X25519", with(ed, "crv", "X25519"), ""},
		{"point off the curve", offCurve, ""},
		{"point far too long", with(ec, "x", strings.Repeat("A", 1000)+"B"), ""},
		{"Ed25519 too short", with(ed, "x", "AAAA"), ""},
		{"RSA of 2047 bits", with(rsa2048, "n", b64(new(big.Int).Lsh(big.NewInt(1), 2046).Bytes())), ""},
		{"RSA of 1024 bits", with(rsa2048, "n", b64(bytes.Repeat([]byte{0xff}, 128))), ""},
		{"RSA of 8193 bits", with(rsa2048, "n", b64(append([]byte{1}, make([]byte, 1024)...))), ""},
		{"RSA exponent 1", with(rsa2048, "e", "AQ"), ""},
		{"RSA exponent beyond 64 bits", with(rsa2048, "e", b64(append([]byte{1}, make([]byte, 8)...))), ""},
		{"not base64", with(ed, "x", "!"), ""},
		{"member of another type", with(ed, "x", 1), ""},
		{"kid too long", with(ed, "kid", strings.Repeat("k", 256)), ""},
		{"damaged certificate", with(ed, "x5c", []string{"AAAA"}), "EdDSA"},
	} {
		keys, err := parseKeys([]byte(keySetText(tt.key)))
		switch {
		case tt.alg == "" && err == nil:
			t.Errorf("%s: accepted for %s", tt.name, keys[0].alg)
		case tt.alg != "" && (err != nil || len(keys) != 1 || keys[0].keyName != keyName{"k", tt.alg}):
			t.Errorf("%s: got %v, %v, want one for %s", tt.name, keys, err, tt.alg)
		}
	}
}

func TestParseKeys_SkipsUnsuitableKeys(t *testing.T) {
	t.Parallel()
	ed := publish("k", newEd25519())
	longest := with(ed, "kid", strings.Repeat("k", 255))
	keys, err := parseKeys([]byte(keySetText(with(ed, "x", 1), jwk{"kty": "new"}, nil, ed, with(ed, "use", "enc"), longest)))
	assert.That(t, err == nil && len(keys) == 2, "got %d keys, %v, want 2", len(keys), err)
}

func TestParseKeys_TheFirstKeyWithAnIDCounts(t *testing.T) {
	t.Parallel()
	first, second := newEd25519(), newEd25519()
	keys, err := parseKeys([]byte(keySetText(publish("k", first), publish("k", second))))
	assert.That(t, err == nil && len(keys) == 1 && first.Public().(ed25519.PublicKey).Equal(keys[0].public.(ed25519.PublicKey)),
		"got %v, %v, want the first key alone", keys, err)
}

func TestKeySet_WithoutKidOnlyIfOneKeyIsPossible(t *testing.T) {
	t.Parallel()
	one, two := publish("", newEd25519()), publish("", newEd25519())
	ec := publish("ec", newECDSA(elliptic.P256()))
	for _, tt := range []struct {
		name string
		keys []jwk
		want keyState
	}{
		{"one", []jwk{one}, keyFound},
		{"one of its kind", []jwk{ec, one}, keyFound},
		{"none of its kind", []jwk{ec}, keyAbsent},
		{"two", []jwk{one, two}, keyMisfit},
		{"three", []jwk{one, two, one}, keyMisfit},
	} {
		keys := must(parseKeys([]byte(keySetText(tt.keys...))))
		_, got := (&keySet{keys: keys, fetched: time.Now()}).find(keyName{alg: "EdDSA"})
		assert.That(t, got == tt.want, "%s: got %d, want %d", tt.name, got, tt.want)
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add([]byte(keySetText(publish("ed", newEd25519()), publish("ec", newECDSA(elliptic.P256())))))
	f.Add([]byte(keySetText(publish("rsa", newRSA(2048)))))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"","e":"AQAB"},{"kty":"oct","k":"AA"},[],null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeys(text)
		assert.Require(t, (len(keys) == 0) == (err != nil) && len(keys) <= maxKeys, "%d keys and %v", len(keys), err)
		for _, k := range keys {
			assert.That(t, k.alg != "" && algorithmOf(k.public) == k.alg, "key %+v is not usable", k)
		}
	})
}

func TestJWKS_UnknownKeyCausesOneSharedFetch(t *testing.T) {
	withIssuer(t, func(t *testing.T, server *issuer, verify func(kid string) error) {
		server.slow(100 * time.Millisecond)
		var good, bad atomic.Int64
		var all sync.WaitGroup
		for range 25 {
			all.Go(func() {
				if verify("a") == nil {
					good.Add(1)
				}
			})
			all.Go(func() {
				if errors.Is(verify("b"), errTokenKeyUnknown) {
					bad.Add(1)
				}
			})
		}
		all.Wait()
		assert.That(t, good.Load() == 25 && bad.Load() == 25, "%d and %d of 25 as expected", good.Load(), bad.Load())
		server.wantFetches(t, 1)
	})
}

func TestJWKS_FetchesAtMostEveryTenSeconds(t *testing.T) {
	withIssuer(t, func(t *testing.T, server *issuer, verify func(kid string) error) {
		wantRefusal(t, verify("x"), errTokenKeyUnknown)
		for i := range 100 { // for nearly 10 seconds
			wantRefusal(t, verify("x"), errTokenKeyUnknown) // a fetch lacked it
			wantRefusal(t, verify("a"), nil)
			wantRefusal(t, verify(fmt.Sprint("y", i)), errTokenKeyUnknown)
			time.Sleep(99 * time.Millisecond)
		}
		server.wantFetches(t, 1)
		time.Sleep(100 * time.Millisecond)
		wantRefusal(t, verify("y1"), errTokenKeyUnknown)
		wantRefusal(t, verify("x"), errTokenKeyUnknown)
		server.wantFetches(t, 2)
	})
}

func TestJWKS_UnknownKeyIsUnavailableOnlyWhileTheIssuerIsDown(t *testing.T) {
	withIssuer(t, func(t *testing.T, server *issuer, verify func(kid string) error) {
		wantRefusal(t, verify("x"), errTokenKeyUnknown)
		time.Sleep(time.Second)
		wantRefusal(t, verify("y"), errTokenKeyUnknown) // no fetch has looked for this one

		server.fail()
		time.Sleep(jwksInterval)
		wantCode(t, verify("x"), "unavailable") // this fetch fails
		wantCode(t, verify("y"), "unavailable") // this one waits for the next

		server.publishOwn("a")
		time.Sleep(jwksInterval)
		wantRefusal(t, verify("x"), errTokenKeyUnknown)
		wantRefusal(t, verify("y"), errTokenKeyUnknown)
	})
}

func TestJWKS_RotationIsFollowedImmediately(t *testing.T) {
	withIssuer(t, func(t *testing.T, server *issuer, verify func(kid string) error) {
		for i := range 5 {
			kid := fmt.Sprint("k", i)
			server.key = newEd25519()
			server.publishOwn(kid)
			wantRefusal(t, verify(kid), nil)
			if i > 0 {
				wantRefusal(t, verify(fmt.Sprint("k", i-1)), errTokenKeyUnknown) // withdrawn
				time.Sleep(jwksInterval)
			}
		}
	})
}

func TestJWKS_KnownKeysWorkWhileTheIssuerIsDown(t *testing.T) {
	withIssuer(t, func(t *testing.T, server *issuer, verify func(kid string) error) {
		wantRefusal(t, verify("a"), nil)
		server.fail()
		for range 20 {
			wantRefusal(t, verify("a"), nil)
			refused := wantCode(t, verify("b"), "unavailable")
			assert.That(t, !strings.Contains(refused.Error(), "hush"), "%v shows the URL", refused)
			time.Sleep(time.Minute)
		}
		time.Sleep(jwksTrust - 21*time.Minute)
		wantRefusal(t, verify("a"), nil)
		time.Sleep(2 * time.Minute) // a withdrawn key would be valid for a day
		wantCode(t, verify("a"), "unavailable")
		server.publishOwn("a", "b")
		time.Sleep(jwksInterval)
		wantRefusal(t, verify("a"), nil)
		wantRefusal(t, verify("b"), nil)
	})
}

func TestJWKS_ReportsAnOutageOnceAndItsEndOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, reports := &assert.Log{}, []bool{}
		server, verify := published(t, JWKSConfig{
			Log: slog.New(slog.NewTextHandler(log, nil)), Reachable: func(up bool) { reports = append(reports, up) },
		})
		good := func() { server.publishOwn("a") }
		for i, tt := range []struct {
			change      func()
			warns, says int
		}{{good, 0, 0}, {server.fail, 1, 0}, {server.fail, 1, 0}, {good, 1, 1}, {good, 1, 1}, {server.fail, 2, 1}} {
			tt.change()
			time.Sleep(jwksMaxAge + time.Second)
			wantRefusal(t, verify("a"), nil)
			synctest.Wait() // for the fetch in the background
			warns, says := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=INFO")
			assert.That(t, warns == tt.warns && says == tt.says,
				"after fetch %d: %d warnings and %d all-clears, want %d and %d", i, warns, says, tt.warns, tt.says)
		}
		if text := log.String(); !strings.Contains(text, ": connection refused") || !strings.Contains(text, `"jwks http`) || !strings.Contains(text, "after=10m2s") || strings.Contains(text, "hush") || strings.Contains(text, "eyJ") {
			t.Errorf("the log reads %s: want the server, the cause and the duration, and neither credentials nor token", text)
		}
		if want := []bool{true, false, false, true, true, false}; !slices.Equal(reports, want) { // one for each fetch
			t.Errorf("reachable: got %v, want %v", reports, want)
		}
	})
}

// A fetch may take seconds. The person on call must not wait for its end.
func TestJWKS_WarnsWhenTheFirstRequestStopsWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &assert.Log{}
		server, verify := published(t, JWKSConfig{Log: slog.New(slog.NewTextHandler(log, nil))})
		server.slow(3 * time.Second)
		for range 2 {
			wantCode(t, verify("a"), "unavailable")
			if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=WARN") || !strings.Contains(text, "no answer after 500ms") {
				t.Errorf("the log reads %s: want one warning", text)
			}
		}
		time.Sleep(5 * time.Second)
		wantRefusal(t, verify("a"), nil)
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "after=3s") {
			t.Errorf("the log reads %s: want that it works again", text)
		}
	})
}

func TestJWKS_DownFromTheStartIsFetchedEveryTenSeconds(t *testing.T) {
	withIssuer(t, func(t *testing.T, server *issuer, verify func(kid string) error) {
		server.fail()
		for second := range 30 {
			want := "jwks https://issuer.example/jwks: connection refused"
			if second%10 > 0 {
				want += " (fetched again after 10s)"
			}
			got := errors.Unwrap(wantCode(t, verify("a"), "unavailable"))
			assert.That(t, got != nil && got.Error() == want, "after %d s: got %v, want %s", second, got, want)
			time.Sleep(time.Second)
		}
		server.wantFetches(t, 3)
	})
}

func TestJWKS_ARequestWaitsHalfASecondForASlowIssuer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &issuer{key: newEd25519()}
		server.publishOwn("a")
		server.slow(2 * time.Second)
		j, token := verifierOf(JWKSConfig{Transport: server}), signedBy(jwt.SigningMethodEdDSA, server.key, "a")

		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := j.Verify(ctx, token)
		refused := wantCode(t, err, "unavailable")
		assert.That(t, errors.Is(refused, context.DeadlineExceeded), "got %v, want the request's deadline", refused)
		began := time.Now()
		_, err = j.Verify(t.Context(), token)
		wantCode(t, err, "unavailable")
		took := time.Since(began)
		assert.That(t, took == 500*time.Millisecond, "waited %s, want 500 ms", took)
		time.Sleep(2 * time.Second)
		_, err = j.Verify(t.Context(), token)
		wantRefusal(t, err, nil)
		server.wantFetches(t, 1) // it outlives its request
	})
}

func TestJWKS_AStaleSetIsRefreshedInTheBackground(t *testing.T) {
	withIssuer(t, func(t *testing.T, server *issuer, verify func(kid string) error) {
		server.publishOwn("old", "kept")
		wantRefusal(t, verify("old"), nil)

		server.publishOwn("kept")
		server.slow(time.Second)
		time.Sleep(jwksMaxAge + time.Second)
		began := time.Now()
		wantRefusal(t, verify("kept"), nil)
		assert.Equal(t, time.Since(began), 0, "a known key waited")
		time.Sleep(2 * time.Second)
		server.slow(0)
		wantRefusal(t, verify("old"), errTokenKeyUnknown)
	})
}

// hostile returns responses that an issuer's URL may give instead of a key set.
func hostile(t *testing.T, good string) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"status 500":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); fmt.Fprint(w, good) },
		"status 204":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"page":          func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"nothing":       func(http.ResponseWriter, *http.Request) {},
		"error object":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"error":"down"}`) },
		"no keys":       func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) },
		"trailing text": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, good, good) },
		"deep":          func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(`{"keys":[`, 20000)) },
		"huge":          func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, good, strings.Repeat(" ", maxJWKS)) },
		"endless header": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 2*maxJWKSHeader))
		},
		"redirect circle": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) },
		"redirect to file": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(good)+1))
			fmt.Fprint(w, good)
		},
		"bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, good)
			for range 256 {
				if _, err := z.Write(bytes.Repeat([]byte(" "), 64<<10)); err != nil {
					return // the client has closed the connection
				}
			}
			_ = z.Close()
		},
	}
}

func TestJWKS_AHostileResponseDoesNotReplaceTheSet(t *testing.T) {
	t.Parallel()
	key := newEd25519()
	good := keySetText(publish("a", key))
	for name, handler := range hostile(t, good) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var turned atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !turned.Load() {
					fmt.Fprint(w, good)
					return
				}
				handler(w, r)
			}))
			t.Cleanup(server.Close)
			j := verifierOf(JWKSConfig{URL: server.URL})
			known := signedBy(jwt.SigningMethodEdDSA, key, "a")
			_, err := j.Verify(t.Context(), known)
			wantRefusal(t, err, nil)

			turned.Store(true)
			_, err = j.Verify(t.Context(), signedBy(jwt.SigningMethodEdDSA, key, "b"))
			wantCode(t, err, "unavailable")
			_, err = j.Verify(t.Context(), known)
			wantRefusal(t, err, nil)
		})
	}
}

func TestJWKS_FollowsFewRedirectsAndNeverToPlainHTTP(t *testing.T) {
	t.Parallel()
	key := newEd25519()
	good := keySetText(publish("a", key))
	mux := http.NewServeMux()
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, good) })
	plain := httptest.NewServer(mux)
	t.Cleanup(plain.Close)
	for i := range 5 { // /5 is five redirects away
		next := fmt.Sprint("/", i)
		if i == 0 {
			next = "/keys"
		}
		mux.Handle(fmt.Sprint("/", i+1), http.RedirectHandler(next, http.StatusFound))
	}
	mux.Handle("/plain", http.RedirectHandler(plain.URL+"/keys", http.StatusFound))
	secure := httptest.NewTLSServer(mux)
	t.Cleanup(secure.Close)

	mux.Handle("/elsewhere", http.RedirectHandler("http://example.com/keys", http.StatusFound)) // leads the client of a test server there

	for _, test := range []struct {
		server *httptest.Server
		path   string
		ok     bool
	}{
		{secure, "/keys", true},
		{secure, "/1", true},
		{secure, "/3", true},
		{secure, "/4", false},
		{secure, "/plain", false},
		{plain, "/plain", true},
		{plain, "/elsewhere", false},
	} {
		j := verifierOf(JWKSConfig{URL: test.server.URL + test.path, Transport: test.server.Client().Transport})
		_, err := j.Verify(t.Context(), signedBy(jwt.SigningMethodEdDSA, key, "a"))
		assert.That(t, (err == nil) == test.ok, "%s: got %v, want success: %v", test.server.URL+test.path, err, test.ok)
	}
}

func TestNewJWKS_NamesTheSetting(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "issuer.example/jwks", "file:///etc/keys", "https://", "://hush", "ftp://issuer.example",
		"http://hush.example", "http://192.0.2.1", "http://localhost.example", "http://127.0.0.1.example", "ftp://localhost",
	} {
		_, err := NewJWKS(JWKSConfig{URL: bad})
		assert.That(t, err != nil && strings.Contains(err.Error(), "JWT_JWKS_URL") && !strings.Contains(err.Error(), "hush"),
			"%q: got %v, want an error that names only the setting", bad, err)
	}
	for _, good := range []string{"https://issuer.example", "http://localhost:80", "http://127.1.2.3/keys", "http://[::1]:80"} {
		_, err := NewJWKS(JWKSConfig{URL: good})
		assert.Succeeds(t, err, "%s", good)
	}
}

func TestJWT_CannotSignIfItVerifiesByJWKS(t *testing.T) {
	t.Parallel()
	token, err := verifierOf(JWKSConfig{Transport: &issuer{}}).Sign(1, "c", time.Hour)
	assert.That(t, err != nil && token == "", "signed a token that it would itself refuse")
}
