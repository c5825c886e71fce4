package auth

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"pgregory.net/rapid"

	"commerce/deploy/assert"
)

// A token that is sent again and again, while the clock moves in both directions, gets the
// same answers as from a JWT that has never seen it.
func TestVerifiedTokens_AreValidAtTheSameTimes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := noon
		clock := func() time.Time { return now }
		newJWT := func() *JWT {
			return must(NewJWT(JWTConfig{Secret: testSecret, Now: clock}))
		}
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
