package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
	"pgregory.net/rapid"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

func segment(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// hs256 signs header and claims unchanged, valid or not.
func hs256(secret []byte, header, claims string) string {
	text := segment(header) + "." + segment(claims)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

const (
	plainHeader = `{"alg":"HS256","typ":"JWT"}`
	plainClaims = `{"sub":"c","store_id":1,"exp":1772366460}` // a minute past noon
)

func TestJWT_Claims(t *testing.T) {
	t.Parallel()
	// noon is 1772366400
	const exp = `"exp":1772366460`
	j := newTestJWT()
	for _, tt := range []struct {
		name, claims string
		want         Claims
		refused      *problem.Error
	}{
		{"plain", plainClaims, Claims{Customer: "c", Store: 1}, nil},
		{"unknown claims", `{"sub":"c",` + exp + `,"roles":["x"],"jti":7,"iat":"yesterday"}`, Claims{Customer: "c"}, nil},

		{"store as text", `{"sub":"c","store_id":"12",` + exp + `}`, Claims{Customer: "c", Store: 12}, nil},
		{"largest store", `{"sub":"c","store_id":9223372036854775807,` + exp + `}`, Claims{Customer: "c", Store: 9223372036854775807}, nil},
		{"store too large", `{"sub":"c","store_id":9223372036854775808,` + exp + `}`, Claims{}, errTokenStoreID},
		{"store 0", `{"sub":"c","store_id":0,` + exp + `}`, Claims{}, errTokenStoreID},
		{"store negative", `{"sub":"c","store_id":-1,` + exp + `}`, Claims{}, errTokenStoreID},
		{"store fraction", `{"sub":"c","store_id":1.5,` + exp + `}`, Claims{}, errTokenStoreID},
		{"store whole float", `{"sub":"c","store_id":1.0,` + exp + `}`, Claims{}, errTokenStoreID},
		{"store exponent", `{"sub":"c","store_id":1e0,` + exp + `}`, Claims{}, errTokenStoreID},
		{"store null", `{"sub":"c","store_id":null,` + exp + `}`, Claims{}, errTokenStoreID},
		{"store true", `{"sub":"c","store_id":true,` + exp + `}`, Claims{}, errTokenStoreID},
		{"store list", `{"sub":"c","store_id":[1],` + exp + `}`, Claims{}, errTokenStoreID},
		{"store empty text", `{"sub":"c","store_id":"",` + exp + `}`, Claims{}, errTokenStoreID},
		{"store text 0", `{"sub":"c","store_id":"0",` + exp + `}`, Claims{}, errTokenStoreID},
		{"store text padded", `{"sub":"c","store_id":"01",` + exp + `}`, Claims{}, errTokenStoreID},
		{"store text spaced", `{"sub":"c","store_id":" 1",` + exp + `}`, Claims{}, errTokenStoreID},
		{"store text signed", `{"sub":"c","store_id":"+1",` + exp + `}`, Claims{}, errTokenStoreID},
		{"store nonsense", `{"sub":"c","store_id":"one",` + exp + `}`, Claims{}, errTokenStoreID},

		{"customer of 255 characters", `{"sub":"` + strings.Repeat("م", 255) + `",` + exp + `}`, Claims{Customer: strings.Repeat("م", 255)}, nil},
		{"customer of 256 characters", `{"sub":"` + strings.Repeat("a", 256) + `",` + exp + `}`, Claims{}, errTokenSubject},
		{"no customer", `{` + exp + `}`, Claims{}, errTokenSubject},
		{"empty customer", `{"sub":"",` + exp + `}`, Claims{}, errTokenSubject},
		{"customer with a C1 control", `{"sub":"a\u0085b",` + exp + `}`, Claims{Customer: "a\u0085b"}, nil},
		{"customer as number", `{"sub":1001,` + exp + `}`, Claims{}, errTokenMalformed},
		{"customer null", `{"sub":null,` + exp + `}`, Claims{}, errTokenMalformed},
		{"customer not UTF-8", "{\"sub\":\"\xff\"," + exp + `}`, Claims{}, errTokenMalformed},
		{"customer with half a surrogate", `{"sub":"\ud800",` + exp + `}`, Claims{}, errTokenMalformed},
		{"customer twice", `{"sub":"c","sub":"d",` + exp + `}`, Claims{}, errTokenMalformed},
		{"customer in capitals", `{"SUB":"c",` + exp + `}`, Claims{}, errTokenSubject},

		{"no expiry", `{"sub":"c"}`, Claims{}, errTokenClaimMissing},
		{"expiry null", `{"sub":"c","exp":null}`, Claims{}, errTokenMalformed},
		{"expiry text", `{"sub":"c","exp":"1772366460"}`, Claims{}, errTokenMalformed},
		{"expiry in capitals", `{"sub":"c","EXP":1772366460}`, Claims{}, errTokenClaimMissing},
		{"expired within leeway", `{"sub":"c","exp":1772366371}`, Claims{Customer: "c"}, nil},
		{"expired by the leeway", `{"sub":"c","exp":1772366370}`, Claims{}, errTokenExpired},
		{"expiry with a fraction", `{"sub":"c","exp":1772366400.5}`, Claims{Customer: "c"}, nil},
		{"expiry in milliseconds", `{"sub":"c","exp":1772366460000}`, Claims{Customer: "c"}, nil},
		{"expiry at 2^53", `{"sub":"c","exp":9007199254740992}`, Claims{Customer: "c"}, nil},
		{"expiry beyond 2^53", `{"sub":"c","exp":9007199254740994}`, Claims{}, errTokenMalformed},
		{"expiry negative", `{"sub":"c","exp":-1}`, Claims{}, errTokenExpired},
		{"expiry beyond all time", `{"sub":"c","exp":1e300}`, Claims{}, errTokenMalformed},
		{"expiry before all time", `{"sub":"c","exp":-1e300}`, Claims{}, errTokenMalformed},

		{"not before within leeway", `{"sub":"c","nbf":1772366430,` + exp + `}`, Claims{Customer: "c"}, nil},
		{"not before past leeway", `{"sub":"c","nbf":1772366431,` + exp + `}`, Claims{}, errTokenNotYetValid},
		{"not before null", `{"sub":"c","nbf":null,` + exp + `}`, Claims{}, errTokenMalformed},

		{"any issuer and audience", `{"sub":"c","iss":"x","aud":["y"],` + exp + `}`, Claims{Customer: "c"}, nil},
		{"issuer as number", `{"sub":"c","iss":1,` + exp + `}`, Claims{}, errTokenMalformed},
		{"audience as object", `{"sub":"c","aud":{},` + exp + `}`, Claims{}, errTokenMalformed},

		{"null", `null`, Claims{}, errTokenClaimMissing},
		{"list", `[]`, Claims{}, errTokenMalformed},
		{"text", `"c"`, Claims{}, errTokenMalformed},
		{"not JSON", `sub=c`, Claims{}, errTokenMalformed},
		{"two objects", plainClaims + plainClaims, Claims{}, errTokenMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := j.Verify(t.Context(), hs256(testSecret, plainHeader, tt.claims))
			wantRefusal(t, err, tt.refused)
			got.Expires = time.Time{} // see TestJWT_SignedTokensVerify
			assert.That(t, got == tt.want, "got %+v, want %+v", got, tt.want)
		})
	}
}

func TestJWT_IssuerAndAudience(t *testing.T) {
	t.Parallel()
	j := must(NewJWT(JWTConfig{Secret: testSecret, Now: atNoon, Issuer: "https://login.example", Audience: "cart"}))
	const rest = `"sub":"c","exp":1772366460}`
	for _, tt := range []struct {
		name, claims string
		refused      *problem.Error
	}{
		{"both", `{"iss":"https://login.example","aud":"cart",` + rest, nil},
		{"one of several audiences", `{"iss":"https://login.example","aud":["shop","cart"],` + rest, nil},
		{"no issuer", `{"aud":"cart",` + rest, errTokenClaimMissing},
		{"another issuer", `{"iss":"https://login.example.evil","aud":"cart",` + rest, errTokenIssuer},
		{"issuer in another case", `{"iss":"https://LOGIN.example","aud":"cart",` + rest, errTokenIssuer},
		{"no audience", `{"iss":"https://login.example",` + rest, errTokenClaimMissing},
		{"empty audience", `{"iss":"https://login.example","aud":"",` + rest, errTokenClaimMissing},
		{"no audience in the list", `{"iss":"https://login.example","aud":[],` + rest, errTokenClaimMissing},
		{"another audience", `{"iss":"https://login.example","aud":["shop","car"],` + rest, errTokenAudience},
		{"audience of numbers", `{"iss":"https://login.example","aud":[1],` + rest, errTokenMalformed},
	} {
		_, err := j.Verify(t.Context(), hs256(testSecret, plainHeader, tt.claims))
		assert.That(t, (tt.refused == nil) == (err == nil) && (err == nil || err.Error() == tt.refused.Error()),
			"%s: got %v, want %v", tt.name, err, tt.refused)
	}
}

func TestJWT_HeaderAndSignature(t *testing.T) {
	t.Parallel()
	j := newTestJWT()
	good := hs256(testSecret, plainHeader, plainClaims)
	unsigned := good[:strings.LastIndexByte(good, '.')]
	foreign := hs256([]byte("another secret, just as long: 32"), plainHeader, plainClaims)
	ofMethod := func(m jwt.SigningMethod, key any) string {
		token := assert.Must(jwt.NewWithClaims(m, jwt.MapClaims{"sub": "c", "exp": noon.Add(time.Minute).Unix()}).SignedString(key))(t)
		return token
	}
	for _, tt := range []struct {
		name, token string
		refused     *problem.Error
	}{
		{"no typ", hs256(testSecret, `{"alg":"HS256"}`, plainClaims), nil},
		{"access token typ", hs256(testSecret, `{"alg":"HS256","typ":"at+jwt"}`, plainClaims), nil},
		{"long typ in capitals", hs256(testSecret, `{"alg":"HS256","typ":"application/AT+JWT"}`, plainClaims), nil},
		{"kid is of no account", hs256(testSecret, `{"alg":"HS256","kid":"../../etc/passwd"}`, plainClaims), nil},
		{"keys in the header are ignored", hs256(testSecret, `{"alg":"HS256","jku":"https://evil.example","x5u":"https://evil.example","jwk":{"kty":"oct","k":"AA"},"x5c":["AA"]}`, plainClaims), nil},

		{"logout token", hs256(testSecret, `{"alg":"HS256","typ":"logout+jwt"}`, plainClaims), errTokenType},
		{"typ null", hs256(testSecret, `{"alg":"HS256","typ":null}`, plainClaims), errTokenType},
		{"critical extension", hs256(testSecret, `{"alg":"HS256","crit":["exp"]}`, plainClaims), errTokenMalformed},
		{"critical null", hs256(testSecret, `{"alg":"HS256","crit":null}`, plainClaims), errTokenMalformed},
		{"unencoded payload", hs256(testSecret, `{"alg":"HS256","b64":false,"crit":["b64"]}`, plainClaims), errTokenMalformed},

		{"none", ofMethod(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType), errTokenSignature},
		{"none with a signature", hs256(testSecret, `{"alg":"none"}`, plainClaims), errTokenSignature},
		{"None", hs256(testSecret, `{"alg":"None"}`, plainClaims), errTokenMalformed},
		{"HS512", ofMethod(jwt.SigningMethodHS512, testSecret), errTokenSignature},
		{"RS256 signed with the secret", hs256(testSecret, `{"alg":"RS256"}`, plainClaims), errTokenSignature},
		{"ES256 signed with the secret", hs256(testSecret, `{"alg":"ES256"}`, plainClaims), errTokenSignature},
		{"EdDSA signed with the secret", hs256(testSecret, `{"alg":"EdDSA"}`, plainClaims), errTokenSignature},
		{"hs256", hs256(testSecret, `{"alg":"hs256"}`, plainClaims), errTokenMalformed},
		{"no alg", hs256(testSecret, `{}`, plainClaims), errTokenMalformed},
		{"alg as list", hs256(testSecret, `{"alg":["HS256"]}`, plainClaims), errTokenMalformed},
		{"header null", hs256(testSecret, `null`, plainClaims), errTokenMalformed},

		{"another secret", foreign, errTokenSignature},
		{"no signature", unsigned + ".", errTokenSignature},
		{"signature cut", good[:len(good)-4], errTokenSignature},
		{"signature of another token", unsigned + foreign[strings.LastIndexByte(foreign, '.'):], errTokenSignature},
		{"claims swapped", segment(plainHeader) + "." + segment(`{"sub":"d","exp":1772366460}`) + good[len(unsigned):], errTokenSignature},
		{"claims judged after the signature", hs256([]byte("wrong"), plainHeader, `{"sub":"c","exp":1}`), errTokenSignature},

		{"empty", "", errTokenMalformed},
		{"one part", "abc", errTokenMalformed},
		{"two parts", unsigned, errTokenMalformed},
		{"four parts", good + ".", errTokenMalformed},
		{"five parts, as of JWE", good + ".a.b", errTokenMalformed},
		{"padding", good + "=", errTokenMalformed},
		{"line break", good[:9] + "\r\n" + good[9:], errTokenMalformed},
		{"space", good + " ", errTokenMalformed},
		{"loose last bits", looseLastBits(good), errTokenMalformed},
		{"standard base64", strings.Replace(good, ".", ".+", 1), errTokenMalformed},
		{"too long", hs256(testSecret, plainHeader, `{"sub":"c","exp":1772366460,"x":"`+strings.Repeat("x", maxJWT)+`"}`), errTokenMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := j.Verify(t.Context(), tt.token)
			wantRefusal(t, err, tt.refused)
			assert.That(t, err == nil || len(tt.token) <= 3 || !strings.Contains(err.Error(), tt.token),
				"%v quotes the token", err)
		})
	}
}

// looseLastBits returns a token whose signature a lenient decoder reads as the same bytes.
func looseLastBits(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, token[len(token)-1])
	return token[:len(token)-1] + string(alphabet[last|1])
}

func TestJWT_PreviousSecretStillVerifies(t *testing.T) {
	t.Parallel()
	j := must(NewJWT(JWTConfig{Secret: testSecret, PreviousSecret: previousSecret, Now: atNoon}))
	for name, secret := range map[string][]byte{"current": testSecret, "previous": previousSecret} {
		_, err := j.Verify(t.Context(), hs256(secret, plainHeader, plainClaims))
		assert.That(t, err == nil, "%s: %v", name, err)
	}
	_, err := newTestJWT().Verify(t.Context(), sign(j, 1, "c"))
	assert.Succeeds(t, err, "signed with another secret than the current one")
	_, err = j.Verify(t.Context(), hs256(nil, plainHeader, plainClaims))
	wantRefusal(t, err, errTokenSignature)
}

func TestNewJWT_NamesTheInvalidSetting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		cfg  JWTConfig
		want string
	}{
		{"no secret", JWTConfig{}, "JWT_SECRET "},
		{"secret of 31 bytes", JWTConfig{Secret: testSecret[:31]}, "JWT_SECRET "},
		{"previous secret of 31 bytes", JWTConfig{Secret: testSecret, PreviousSecret: previousSecret[:31]}, "JWT_SECRET_PREVIOUS "},
		{"previous secret alone", JWTConfig{PreviousSecret: previousSecret}, "JWT_SECRET "},
	} {
		_, err := NewJWT(tt.cfg)
		assert.That(t, err != nil && strings.HasPrefix(err.Error(), tt.want),
			"%s: got %v, want an error that names %s", tt.name, err, tt.want)
	}
}

func TestJWT_SignedTokensVerify(t *testing.T) {
	t.Parallel()
	j := must(NewJWT(JWTConfig{Secret: testSecret, Issuer: "us", Audience: "us too", Now: atNoon}))
	customers := rapid.StringOfN(rapid.Rune(), 1, 255, -1)
	rapid.Check(t, func(t *rapid.T) {
		want := Claims{Customer: customers.Draw(t, "customer"), Store: rapid.Int64Min(0).Draw(t, "store")}
		token, err := j.Sign(want.Store, want.Customer, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got, err := j.Verify(context.Background(), token)
		if !got.Expires.Equal(noon.Add(time.Minute)) {
			t.Fatalf("expires at %v", got.Expires)
		}
		if got.Expires = (time.Time{}); err != nil || got != want {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestJWT_SignedTokensExpire(t *testing.T) {
	t.Parallel()
	token := sign(newTestJWT(), 1, "c") // for an hour
	for after, want := range map[time.Duration]*problem.Error{
		time.Hour + 29*time.Second: nil,
		time.Hour + 30*time.Second: errTokenExpired,
	} {
		j := must(NewJWT(JWTConfig{Secret: testSecret, Now: func() time.Time { return noon.Add(after) }}))
		_, err := j.Verify(t.Context(), token)
		wantRefusal(t, err, want)
	}
}

func TestJWT_SignRefusesWhatVerifyWouldRefuse(t *testing.T) {
	t.Parallel()
	j := newTestJWT()
	for _, tt := range []struct {
		name, customer string
		store          int64
		ttl            time.Duration
	}{
		{"no customer", "", 1, time.Hour},
		{"not UTF-8", "\xff", 1, time.Hour},
		{"customer too long", strings.Repeat("a", 256), 1, time.Hour},
		{"negative store", "c", -1, time.Hour},
		{"no lifetime", "c", 1, 0},
	} {
		token, err := j.Sign(tt.store, tt.customer, tt.ttl)
		assert.That(t, err != nil && token == "", "%s: signed", tt.name)
	}
}

func FuzzVerify(f *testing.F) {
	j := assert.Must(NewJWT(JWTConfig{Secret: testSecret, Now: atNoon}))(f)
	f.Add(plainHeader, plainClaims, true)
	f.Add(`{"alg":"none"}`, plainClaims, false)
	f.Add(plainHeader, `{"sub":"\ud800","exp":1e9,"store_id":"1"}`, true)
	f.Add(plainHeader, `{"sub":"c","exp":1772366460,"aud":[null],"store_id":null}`, true)
	f.Fuzz(func(t *testing.T, header, claims string, signed bool) {
		token := hs256(testSecret, header, claims)
		if !signed {
			token = header + "." + claims
		}
		got, err := j.Verify(t.Context(), token)
		if err != nil {
			refused := wantCode(t, err, "unauthenticated")
			assert.That(t, got == (Claims{}) && (!strings.Contains(refused.Error(), token) || len(token) <= 16),
				"refused with %+v and %v", got, refused)
			return
		}
		if n := utf8.RuneCountInString(got.Customer); n < 1 || n > 255 || !utf8.ValidString(got.Customer) || got.Store < 0 {
			t.Errorf("accepted customer %q in store %d", got.Customer, got.Store)
		}
		assert.That(t, signed, "accepted %q unsigned", token)
	})
}

// A token that is sent again and again, while the clock moves in both directions, gets the
// same answers as from a JWT that has never seen it.
func TestVerifiedTokens_AreValidAtTheSameTimes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := noon
		clock := func() time.Time { return now }
		newJWT := func() *JWT { return must(NewJWT(JWTConfig{Secret: testSecret, Now: clock})) }
		claims := fmt.Sprintf(`{"sub":"c","store_id":1,"exp":%d`, noon.Unix()+int64(rapid.IntRange(-60, 60).Draw(t, "exp")))
		if rapid.Bool().Draw(t, "has nbf") {
			claims += fmt.Sprintf(`,"nbf":%d`, noon.Unix()+int64(rapid.IntRange(-60, 60).Draw(t, "nbf")))
		}
		token, used := hs256(testSecret, plainHeader, claims+"}"), newJWT()
		for range 30 {
			now = noon.Add(time.Duration(rapid.Int64Range(-200_000, 200_000).Draw(t, "ms")) * time.Millisecond)
			got, gotErr := used.Verify(t.Context(), token)
			want, wantErr := newJWT().Verify(t.Context(), token)
			if got != want || gotErr != wantErr {
				t.Fatalf("%s: got %v, %v, want %v, %v", now.Sub(noon), got, gotErr, want, wantErr)
			}
		}
	})
}

func TestVerifiedTokens_AreNotFoundByASimilarToken(t *testing.T) {
	t.Parallel()
	j := newTestJWT()
	token := sign(j, 1, "c")
	assert.Must(j.Verify(t.Context(), token))(t)
	for _, other := range []string{token[:len(token)-1], token + "A", token + "=", token + "\n", token[1:]} {
		_, err := j.Verify(t.Context(), other)
		assert.That(t, err != nil, "accepts %q after %q", other, token)
	}
}

// A token whose key was withdrawn, or replaced under the same name, is refused after the
// next fetch, even if no other token has caused it.
func TestVerifiedTokens_EndWithTheirKey(t *testing.T) {
	t.Parallel()
	for name, kid := range map[string]string{"withdrawn": "b", "replaced": "a"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, verify := published(t, JWKSConfig{}) // a token of one key and ID is always the same
				wantRefusal(t, verify("a"), nil)
				server.publish(publish(kid, newEd25519()))
				time.Sleep(jwksMaxAge)
				wantRefusal(t, verify("a"), nil)
				time.Sleep(time.Second)
				wantRefusal(t, verify("a"), nil) // and begins a fetch
				synctest.Wait()
				assert.That(t, verify("a") != nil, "still accepted")
			})
		})
	}
}

func TestVerifiedTokens_AreBounded(t *testing.T) {
	t.Parallel()
	j := newTestJWT()
	p := &payload{RegisteredClaims: jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(noon.Add(time.Hour))}}
	for i := range uint64(3 * maxVerified) {
		var d tokenDigest
		binary.BigEndian.PutUint64(d[:], i)
		j.remember(d, Claims{Customer: "c"}, p, nil)
	}
	assert.Equal(t, j.verified.Len(), maxVerified, "tokens")
}
