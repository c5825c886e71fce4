package torture

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/deploy/assert"
)

const jwtIssuer = "https://login.example.com"

func bearers(t testing.TB, apiTokens apiTokens) []bearer {
	one, two := customerToken(t, 1, "1001"), customerToken(t, 2, "1001")
	return append(programBearers(apiTokens), []bearer{
		{name: "none"},
		{name: "Basic", values: []string{"Basic c3RhZ2luZzpzZWNyZXQ="}, kind: basic},
		customerBearer("customer", 1, "1001", one),
		customerBearer("the other store's customer", 2, "1001", two),
		customerBearer("neighbor", 1, "1002", customerToken(t, 1, "1002")),
		customerBearer("customer without a cart", 1, "7777", customerToken(t, 1, "7777")),
		customerBearer("customer, store as text", 1, "1001", customerToken(t, "1", "1001")),
		customerBearer("customer without a store", 0, "1001", customerToken(t, nil, "1001")),
		customerBearer("customer of an unknown store", 99, "1001", customerToken(t, 99, "1001")),
		badBearer("expired", customerToken(t, 1, "1001", "exp", time.Now().Add(-time.Hour).Unix())),
		badBearer("another issuer", customerToken(t, 1, "1001", "iss", "https://evil.example.com")),
		badBearer("another secret", signJWT(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), claimsOf(1, "1001"))),
		badBearer("alg none", signJWT(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claimsOf(1, "1001"))),
		badBearer("another customer's claims", tampered(one, claimsOf(1, "1002"))),
		badBearer("another store's claims", tampered(one, claimsOf(2, "1001"))),
		badBearer("malformed", "not.a.token"),
		badBearer("empty", ""),
		{name: "two customers", values: []string{"Bearer " + one, "Bearer " + two}, kind: invalid},
	}...)
}

type apiTokens struct{ one, two, revoked string }

func programBearers(tokens apiTokens) []bearer {
	id, _, _ := strings.Cut(tokens.two, "|")
	_, secret, _ := strings.Cut(tokens.one, "|")
	const noToken = "not a valid API token"
	return []bearer{
		{name: "API token", values: []string{"Bearer " + tokens.one}, kind: storeProgram, store: storeOne},
		{name: "the other store's API token", values: []string{"Bearer " + tokens.two}, kind: storeProgram, store: storeTwo},
		{name: "revoked API token", values: []string{"Bearer " + tokens.revoked}, kind: invalid, refused: noToken},
		{name: "the other API token's id", values: []string{"Bearer " + id + "|" + secret}, kind: invalid, refused: noToken},
		{name: "unknown API token", values: []string{"Bearer 99999999|" + secret}, kind: invalid, refused: noToken},
		{name: "malformed API token", values: []string{"Bearer " + id + "|short"}, kind: invalid, refused: noToken},
		{name: "two API tokens", values: []string{"Bearer " + tokens.one, "Bearer " + tokens.two}, kind: invalid},
	}
}

func customerBearer(name string, store int64, sub, token string) bearer {
	return bearer{name: name, values: []string{"Bearer " + token}, kind: customerJWT, store: store, sub: sub}
}

func badBearer(name, token string) bearer {
	return bearer{name: name, values: []string{"Bearer " + token}, kind: invalid}
}

// claimsOf returns a customer's claims. store is nil for none.
func claimsOf(store any, sub string, edits ...any) jwt.MapClaims {
	claims := jwt.MapClaims{"sub": sub, "iss": jwtIssuer, "exp": time.Now().Add(time.Hour).Unix()}
	if store != nil {
		claims["store_id"] = store
	}
	for i := 0; i+1 < len(edits); i += 2 {
		claims[edits[i].(string)] = edits[i+1]
	}
	return claims
}

func customerToken(t testing.TB, store any, sub string, edits ...any) string {
	t.Helper()
	return signJWT(t, jwt.SigningMethodHS256, []byte(jwtSecret), claimsOf(store, sub, edits...))
}

func signJWT(t testing.TB, method jwt.SigningMethod, key any, claims jwt.Claims) string {
	t.Helper()
	return assert.Must(jwt.NewWithClaims(method, claims).SignedString(key))(t)
}

func tampered(token string, claims jwt.MapClaims) string {
	parts := strings.Split(token, ".")
	unsigned, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SigningString() // claims are plain values
	return unsigned + "." + parts[2]
}
