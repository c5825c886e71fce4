package auth

import (
	"bytes"
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
)

// jwk is a key as an issuer publishes it.
type jwk = map[string]any

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// publish returns the public half of private as a JWK.
func publish(t testing.TB, kid string, private crypto.Signer) jwk {
	t.Helper()
	switch public := private.Public().(type) {
	case *rsa.PublicKey:
		return jwk{"kty": "RSA", "kid": kid, "n": b64(public.N.Bytes()), "e": b64(big.NewInt(int64(public.E)).Bytes())}
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		size := len(point) / 2
		return jwk{"kty": "EC", "kid": kid, "crv": public.Params().Name, "x": b64(point[1 : 1+size]), "y": b64(point[1+size:])}
	case ed25519.PublicKey:
		return jwk{"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": b64(public)}
	}
	t.Fatalf("no JWK for a %T", private)
	return nil
}

// with returns a copy of key with one member changed.
func with(key jwk, member string, value any) jwk {
	changed := jwk{member: value}
	for name, v := range key {
		if name != member {
			changed[name] = v
		}
	}
	return changed
}

func keySetText(t testing.TB, keys ...jwk) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func newEd25519(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newECDSA(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRSA(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signedBy returns a token that is valid until the end of the century. A nil kid leaves
// it out.
func signedBy(t testing.TB, method jwt.SigningMethod, key, kid any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, jwt.MapClaims{"sub": "c", "store_id": 1, "exp": 4102444800})
	if kid != nil {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// issuer is an issuer's server without a network. It counts requests.
type issuer struct {
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

func (i *issuer) publish(t testing.TB, keys ...jwk) {
	t.Helper()
	text := keySetText(t, keys...)
	i.change(func() { i.body, i.err, i.delay = text, nil, 0 })
}

func (i *issuer) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// verifierOf returns a JWT that takes its keys from the issuer.
func verifierOf(t testing.TB, cfg JWKSConfig) *JWT {
	t.Helper()
	if cfg.URL == "" {
		cfg.URL = "https://issuer.example/jwks?key=hush"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	keys, err := NewJWKS(cfg)
	if err != nil {
		t.Fatal(err)
	}
	j, err := NewJWT(JWTConfig{JWKS: keys, Secret: testSecret})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestJWKS_EachAlgorithmNeedsItsOwnKindOfKey(t *testing.T) {
	t.Parallel()
	edKey, ecKey, rsaKey := newEd25519(t), newECDSA(t, elliptic.P256()), newRSA(t, 2048)
	other, p384 := newEd25519(t), newECDSA(t, elliptic.P384())
	server := &issuer{}
	server.publish(t, publish(t, "ed", edKey), publish(t, "ec", ecKey), publish(t, "rsa", rsaKey))
	j := verifierOf(t, JWKSConfig{Transport: server})

	rsaPublic := rsaKey.PublicKey.N.Bytes()
	edPublic := edKey.Public().(ed25519.PublicKey)
	for _, tt := range []struct {
		name    string
		token   string
		refused *problem.Error
	}{
		{"EdDSA", signedBy(t, jwt.SigningMethodEdDSA, edKey, "ed"), nil},
		{"ES256", signedBy(t, jwt.SigningMethodES256, ecKey, "ec"), nil},
		{"RS256", signedBy(t, jwt.SigningMethodRS256, rsaKey, "rsa"), nil},
		{"EdDSA without kid", signedBy(t, jwt.SigningMethodEdDSA, edKey, nil), nil},
		{"EdDSA with an empty kid", signedBy(t, jwt.SigningMethodEdDSA, edKey, ""), nil},

		{"another's signature", signedBy(t, jwt.SigningMethodEdDSA, other, "ed"), errTokenSignature},
		{"another's signature without kid", signedBy(t, jwt.SigningMethodEdDSA, other, nil), errTokenSignature},
		{"EdDSA under the kid of an EC key", signedBy(t, jwt.SigningMethodEdDSA, edKey, "ec"), errTokenKeyUnknown},
		{"ES256 under the kid of an RSA key", signedBy(t, jwt.SigningMethodES256, ecKey, "rsa"), errTokenKeyUnknown},
		{"RS256 under the kid of an EdDSA key", signedBy(t, jwt.SigningMethodRS256, rsaKey, "ed"), errTokenKeyUnknown},
		{"PS256", signedBy(t, jwt.SigningMethodPS256, rsaKey, "rsa"), errTokenSignature},
		{"RS512", signedBy(t, jwt.SigningMethodRS512, rsaKey, "rsa"), errTokenSignature},
		{"ES384", signedBy(t, jwt.SigningMethodES384, p384, "ec"), errTokenSignature},
		{"none", signedBy(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "ed"), errTokenSignature},
		{"HS256 with the service's secret", signedBy(t, jwt.SigningMethodHS256, testSecret, nil), errTokenSignature},
		{"HS256 with a public RSA key", signedBy(t, jwt.SigningMethodHS256, rsaPublic, "rsa"), errTokenSignature},
		{"HS256 with a public EdDSA key", signedBy(t, jwt.SigningMethodHS256, []byte(edPublic), "ed"), errTokenSignature},
		{"kid as a number", signedBy(t, jwt.SigningMethodEdDSA, edKey, 1), errTokenMalformed},
		{"kid null", withHeader(t, edKey, "kid", nil), errTokenMalformed},
		{"kid too long", signedBy(t, jwt.SigningMethodEdDSA, edKey, strings.Repeat("k", 256)), errTokenMalformed},
		{"critical extension", withHeader(t, edKey, "crit", []string{"exp"}), errTokenMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := j.Verify(t.Context(), tt.token)
			wantRefusal(t, err, tt.refused)
		})
	}
}

// withHeader makes a token of key "ed" with one more header.
func withHeader(t testing.TB, key ed25519.PrivateKey, name string, value any) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"sub": "c", "exp": 4102444800})
	token.Header["kid"] = "ed"
	token.Header[name] = value
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestJWKS_IgnoresKeysInATokensHeader(t *testing.T) {
	t.Parallel()
	var visits atomic.Int64
	evilKey, goodKey := newEd25519(t), newEd25519(t)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		visits.Add(1)
		fmt.Fprint(w, keySetText(t, publish(t, "ed", evilKey)))
	}))
	t.Cleanup(evil.Close)
	server := &issuer{}
	server.publish(t, with(publish(t, "ed", goodKey), "x5u", evil.URL))
	j := verifierOf(t, JWKSConfig{Transport: server})

	for name, value := range map[string]any{
		"jku": evil.URL, "x5u": evil.URL, "jwk": publish(t, "ed", evilKey),
		"x5c": []string{b64(evilKey.Public().(ed25519.PublicKey))},
	} {
		_, err := j.Verify(t.Context(), withHeader(t, evilKey, name, value))
		wantRefusal(t, err, errTokenSignature)
		if _, err := j.Verify(t.Context(), withHeader(t, goodKey, name, value)); err != nil {
			t.Errorf("%s makes a valid token invalid: %v", name, err)
		}
	}
	if visits.Load() != 0 {
		t.Errorf("followed a token's URL %d times", visits.Load())
	}
}

func TestParseKeys_AcceptsOnlySuitableKeys(t *testing.T) {
	t.Parallel()
	edKey, ecKey := newEd25519(t), newECDSA(t, elliptic.P256())
	ed, ec := publish(t, "k", edKey), publish(t, "k", ecKey)
	rsa2048 := publish(t, "k", newRSA(t, 2048))
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
		{"P-384", publish(t, "k", newECDSA(t, elliptic.P384())), ""},
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
		keys, err := parseKeys([]byte(keySetText(t, tt.key)))
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
	ed := publish(t, "k", newEd25519(t))
	longest := with(ed, "kid", strings.Repeat("k", 255))
	keys, err := parseKeys([]byte(keySetText(t, with(ed, "x", 1), jwk{"kty": "new"}, nil, ed, with(ed, "use", "enc"), longest)))
	if err != nil || len(keys) != 2 {
		t.Errorf("got %d keys, %v, want 2", len(keys), err)
	}
}

func TestParseKeys_TheFirstKeyWithAnIDCounts(t *testing.T) {
	t.Parallel()
	first, second := newEd25519(t), newEd25519(t)
	keys, err := parseKeys([]byte(keySetText(t, publish(t, "k", first), publish(t, "k", second))))
	if err != nil || len(keys) != 1 || !first.Public().(ed25519.PublicKey).Equal(keys[0].public.(ed25519.PublicKey)) {
		t.Errorf("got %v, %v, want the first key alone", keys, err)
	}
}

func TestKeySet_WithoutKidOnlyIfOneKeyIsPossible(t *testing.T) {
	t.Parallel()
	one, two := publish(t, "", newEd25519(t)), publish(t, "", newEd25519(t))
	ec := publish(t, "ec", newECDSA(t, elliptic.P256()))
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
		keys, err := parseKeys([]byte(keySetText(t, tt.keys...)))
		if err != nil {
			t.Fatal(err)
		}
		if _, got := (&keySet{keys: keys}).find(keyName{alg: "EdDSA"}); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add([]byte(keySetText(f, publish(f, "ed", newEd25519(f)), publish(f, "ec", newECDSA(f, elliptic.P256())))))
	f.Add([]byte(keySetText(f, publish(f, "rsa", newRSA(f, 2048)))))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"","e":"AQAB"},{"kty":"oct","k":"AA"},[],null]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeys(text)
		if (len(keys) == 0) != (err != nil) || len(keys) > maxKeys {
			t.Fatalf("%d keys and %v", len(keys), err)
		}
		for _, k := range keys {
			if k.alg == "" || algorithmOf(k.public) != k.alg {
				t.Errorf("key %+v is not usable", k)
			}
		}
	})
}

// published returns a key, an issuer that publishes it with the id "a", and a JWT that
// takes its keys from the issuer.
func published(t testing.TB) (ed25519.PrivateKey, *issuer, *JWT) {
	t.Helper()
	key, server := newEd25519(t), &issuer{}
	server.publish(t, publish(t, "a", key))
	return key, server, verifierOf(t, JWKSConfig{Transport: server})
}

// verifying returns a function that verifies a token with any key id, signed by key.
func verifying(t testing.TB, j *JWT, key ed25519.PrivateKey) func(kid string) error {
	return func(kid string) error {
		_, err := j.Verify(t.Context(), signedBy(t, jwt.SigningMethodEdDSA, key, kid))
		return err
	}
}

func TestJWKS_UnknownKeyCausesOneSharedFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key, server, j := published(t)
		server.change(func() { server.delay = 100 * time.Millisecond })
		known, unknown := signedBy(t, jwt.SigningMethodEdDSA, key, "a"), signedBy(t, jwt.SigningMethodEdDSA, key, "b")
		var good, bad atomic.Int64
		var all sync.WaitGroup
		for range 25 {
			all.Go(func() {
				if _, err := j.Verify(t.Context(), known); err == nil {
					good.Add(1)
				}
			})
			all.Go(func() {
				if _, err := j.Verify(t.Context(), unknown); errors.Is(err, errTokenKeyUnknown) {
					bad.Add(1)
				}
			})
		}
		all.Wait()
		if good.Load() != 25 || bad.Load() != 25 || server.served.Load() != 1 {
			t.Errorf("%d and %d of 25 as expected after %d fetches, want all after 1",
				good.Load(), bad.Load(), server.served.Load())
		}
	})
}

func TestJWKS_FetchesAtMostEveryTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key, server, j := published(t)
		verify := verifying(t, j, key)
		wantRefusal(t, verify("x"), errTokenKeyUnknown)
		for i := range 100 { // for nearly 10 seconds
			wantRefusal(t, verify("x"), errTokenKeyUnknown) // a fetch lacked it
			wantRefusal(t, verify("a"), nil)
			wantRefusal(t, verify(fmt.Sprint("y", i)), errTokenKeyUnknown)
			time.Sleep(99 * time.Millisecond)
		}
		if n := server.served.Load(); n != 1 {
			t.Errorf("%d fetches within 10 s, want 1", n)
		}
		time.Sleep(100 * time.Millisecond)
		wantRefusal(t, verify("y1"), errTokenKeyUnknown)
		wantRefusal(t, verify("x"), errTokenKeyUnknown)
		if n := server.served.Load(); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
	})
}

func TestJWKS_UnknownKeyIsUnavailableOnlyWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key, server, j := published(t)
		verify := verifying(t, j, key)
		wantRefusal(t, verify("x"), errTokenKeyUnknown)
		time.Sleep(time.Second)
		wantRefusal(t, verify("y"), errTokenKeyUnknown) // no fetch has looked for this one

		server.change(func() { server.err = errors.New("connection refused") })
		time.Sleep(jwksInterval)
		wantCode(t, verify("x"), "unavailable") // this fetch fails
		wantCode(t, verify("y"), "unavailable") // this one waits for the next

		server.publish(t, publish(t, "a", key))
		time.Sleep(jwksInterval)
		wantRefusal(t, verify("x"), errTokenKeyUnknown)
		wantRefusal(t, verify("y"), errTokenKeyUnknown)
	})
}

func TestJWKS_RotationIsFollowedImmediately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &issuer{}
		j := verifierOf(t, JWKSConfig{Transport: server})
		var old string
		for i := range 5 {
			kid, key := fmt.Sprint("k", i), newEd25519(t)
			server.publish(t, publish(t, kid, key))
			token := signedBy(t, jwt.SigningMethodEdDSA, key, kid)
			if _, err := j.Verify(t.Context(), token); err != nil {
				t.Fatalf("key %d: %v", i, err)
			}
			old, token = token, old
			if token != "" {
				_, err := j.Verify(t.Context(), token)
				wantRefusal(t, err, errTokenKeyUnknown) // withdrawn
				time.Sleep(jwksInterval)
			}
		}
	})
}

func TestJWKS_KnownKeysWorkWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("connection refused")
		key, server, j := published(t)
		verify := verifying(t, j, key)
		wantRefusal(t, verify("a"), nil)
		server.change(func() { server.err = down })
		for range 20 {
			wantRefusal(t, verify("a"), nil)
			refused := wantCode(t, verify("b"), "unavailable")
			if strings.Contains(refused.Error(), "hush") {
				t.Errorf("%v shows the URL", refused)
			}
			time.Sleep(time.Minute)
		}
		server.publish(t, publish(t, "a", key), publish(t, "b", key))
		wantRefusal(t, verify("b"), nil)
	})
}

func TestJWKS_ReportsAfterEachFetchWhetherTheIssuerIsReachable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reports []bool
		key, server := newEd25519(t), &issuer{}
		j := verifierOf(t, JWKSConfig{Transport: server, Reachable: func(up bool) { reports = append(reports, up) }})
		token := signedBy(t, jwt.SigningMethodEdDSA, key, "a")
		fetch := func(change func()) {
			change()
			time.Sleep(jwksMaxAge + time.Second)
			_, _ = j.Verify(t.Context(), token)
			synctest.Wait() // for the fetch in the background
		}
		server.publish(t, publish(t, "a", key))
		fetch(func() {})
		fetch(func() { server.change(func() { server.err = errors.New("connection refused") }) })
		fetch(func() { server.publish(t, publish(t, "a", key)) })
		if want := []bool{true, false, true}; !slices.Equal(reports, want) {
			t.Errorf("got %v, want %v", reports, want)
		}
	})
}

func TestJWKS_LogsAnOutageOnceAndItsEndOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key, server, log := newEd25519(t), &issuer{}, &logBuffer{}
		j := verifierOf(t, JWKSConfig{Transport: server, Log: slog.New(slog.NewTextHandler(log, nil))})
		token := signedBy(t, jwt.SigningMethodEdDSA, key, "a")
		good := func() { server.publish(t, publish(t, "a", key)) }
		down := func() { server.change(func() { server.err = errors.New("connection refused") }) }
		for i, tt := range []struct {
			change      func()
			warns, says int
		}{{good, 0, 0}, {down, 1, 0}, {down, 1, 0}, {good, 1, 1}, {good, 1, 1}, {down, 2, 1}} {
			tt.change()
			time.Sleep(jwksMaxAge + time.Second)
			_, err := j.Verify(t.Context(), token)
			wantRefusal(t, err, nil)
			synctest.Wait() // for the fetch in the background
			warns, says := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=INFO")
			if warns != tt.warns || says != tt.says {
				t.Errorf("after fetch %d: %d warnings and %d all-clears, want %d and %d", i, warns, says, tt.warns, tt.says)
			}
		}
		if text := log.String(); !strings.Contains(text, ": connection refused") || !strings.Contains(text, `"jwks http`) || !strings.Contains(text, "after=10m2s") || strings.Contains(text, "hush") || strings.Contains(text, token) {
			t.Errorf("the log reads %s: want the server, the cause and the duration, and neither credentials nor token", text)
		}
	})
}

// logBuffer is a log that may be read while a fetch in the background writes it.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A fetch may take seconds. The person on call must not wait for its end.
func TestJWKS_WarnsWhenTheFirstRequestStopsWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key, server, log := newEd25519(t), &issuer{}, &logBuffer{}
		server.publish(t, publish(t, "a", key))
		server.change(func() { server.delay = 3 * time.Second })
		j := verifierOf(t, JWKSConfig{Transport: server, Log: slog.New(slog.NewTextHandler(log, nil))})
		token := signedBy(t, jwt.SigningMethodEdDSA, key, "a")
		for range 2 {
			_, err := j.Verify(t.Context(), token)
			wantCode(t, err, "unavailable")
			if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=WARN") || !strings.Contains(text, "no answer after 500ms") {
				t.Errorf("the log reads %s: want one warning", text)
			}
		}
		time.Sleep(5 * time.Second)
		_, err := j.Verify(t.Context(), token)
		wantRefusal(t, err, nil)
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "after=3s") {
			t.Errorf("the log reads %s: want that it works again", text)
		}
	})
}

func TestJWKS_NamesTheIssuerFirstBetweenFetches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := verifierOf(t, JWKSConfig{Transport: &issuer{err: errors.New("connection refused")}})
		token := signedBy(t, jwt.SigningMethodEdDSA, newEd25519(t), "a")
		for _, want := range []string{
			"jwks https://issuer.example/jwks: connection refused",
			"jwks https://issuer.example/jwks: connection refused (fetched again after 10s)",
		} {
			_, err := j.Verify(t.Context(), token)
			if got := errors.Unwrap(err); got == nil || got.Error() != want {
				t.Errorf("got %v, want %s", got, want)
			}
		}
	})
}

func TestJWKS_DownFromTheStartIsFetchedEveryTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &issuer{err: errors.New("connection refused")}
		j := verifierOf(t, JWKSConfig{Transport: server})
		token := signedBy(t, jwt.SigningMethodEdDSA, newEd25519(t), "a")
		for range 30 { // seconds
			_, err := j.Verify(t.Context(), token)
			wantCode(t, err, "unavailable")
			time.Sleep(time.Second)
		}
		if n := server.served.Load(); n != 3 {
			t.Errorf("%d fetches in 30 s, want 3", n)
		}
	})
}

func TestJWKS_ARequestWaitsHalfASecondForASlowIssuer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		key, server, j := published(t)
		server.change(func() { server.delay = 2 * time.Second })
		token := signedBy(t, jwt.SigningMethodEdDSA, key, "a")

		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := j.Verify(ctx, token)
		if refused := wantCode(t, err, "unavailable"); !errors.Is(refused, context.DeadlineExceeded) {
			t.Errorf("got %v, want the request's deadline", refused)
		}
		began := time.Now()
		_, err = j.Verify(t.Context(), token)
		wantCode(t, err, "unavailable")
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("waited %s, want 500 ms", took)
		}
		time.Sleep(2 * time.Second)
		_, err = j.Verify(t.Context(), token)
		wantRefusal(t, err, nil)
		if n := server.served.Load(); n != 1 {
			t.Errorf("%d fetches, want 1 that outlives its request", n)
		}
	})
}

func TestJWKS_AStaleSetIsRefreshedInTheBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		withdrawn, kept, server := newEd25519(t), newEd25519(t), &issuer{}
		server.publish(t, publish(t, "old", withdrawn), publish(t, "kept", kept))
		j := verifierOf(t, JWKSConfig{Transport: server})
		token := signedBy(t, jwt.SigningMethodEdDSA, withdrawn, "old")
		_, err := j.Verify(t.Context(), token)
		wantRefusal(t, err, nil)

		server.publish(t, publish(t, "kept", kept))
		server.change(func() { server.delay = time.Second })
		time.Sleep(jwksMaxAge + time.Second)
		began := time.Now()
		_, err = j.Verify(t.Context(), signedBy(t, jwt.SigningMethodEdDSA, kept, "kept"))
		wantRefusal(t, err, nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("a known key waited %s", took)
		}
		time.Sleep(2 * time.Second)
		server.change(func() { server.delay = 0 })
		_, err = j.Verify(t.Context(), token)
		wantRefusal(t, err, errTokenKeyUnknown)
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
	key := newEd25519(t)
	good := keySetText(t, publish(t, "a", key))
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
			j := verifierOf(t, JWKSConfig{URL: server.URL})
			known := signedBy(t, jwt.SigningMethodEdDSA, key, "a")
			_, err := j.Verify(t.Context(), known)
			wantRefusal(t, err, nil)

			turned.Store(true)
			_, err = j.Verify(t.Context(), signedBy(t, jwt.SigningMethodEdDSA, key, "b"))
			wantCode(t, err, "unavailable")
			_, err = j.Verify(t.Context(), known)
			wantRefusal(t, err, nil)
		})
	}
}

func TestJWKS_FollowsFewRedirectsAndNeverToPlainHTTP(t *testing.T) {
	t.Parallel()
	key := newEd25519(t)
	good := keySetText(t, publish(t, "a", key))
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

	for path, ok := range map[string]bool{"/keys": true, "/1": true, "/3": true, "/4": false, "/plain": false} {
		j := verifierOf(t, JWKSConfig{URL: secure.URL + path, Transport: secure.Client().Transport})
		_, err := j.Verify(t.Context(), signedBy(t, jwt.SigningMethodEdDSA, key, "a"))
		if (err == nil) != ok {
			t.Errorf("%s: got %v, want success: %v", path, err, ok)
		}
	}
}

func TestNewJWKS_NamesTheSetting(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "issuer.example/jwks", "file:///etc/keys", "https://", "://hush", "ftp://issuer.example"} {
		_, err := NewJWKS(JWKSConfig{URL: bad})
		if err == nil || !strings.Contains(err.Error(), "JWT_JWKS_URL") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: got %v, want an error that names only the setting", bad, err)
		}
	}
}

func TestJWT_CannotSignIfItVerifiesByJWKS(t *testing.T) {
	t.Parallel()
	if token, err := verifierOf(t, JWKSConfig{Transport: &issuer{}}).Sign(1, "c", time.Hour); err == nil || token != "" {
		t.Error("signed a token that it would itself refuse")
	}
}
