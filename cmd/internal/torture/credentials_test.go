package torture

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/deploy/assert"
)

// The stores of the sample data, and their publishable keys.
const (
	storeOne, storeTwo       = 1, 2
	storeOneKey, storeTwoKey = "pk_demo", "pk_demo2"
)

// visitor is the sender of a call, by the rules of docs/cart.md.
type visitor struct {
	store  int64
	cart   cartOf
	guest  cartOf // that is merged into cart; zero for none
	status int    // of the refusal if the caller is not served; otherwise 0
	code   string
}

// cartOf identifies a cart.
type cartOf struct {
	store int64
	sub   string // of a customer; "" for a guest
	token string // of a guest
}

// credentials are everything in a request that identifies its sender.
type credentials struct {
	key    publicKey
	bearer bearer
	token  cartToken
}

func (c credentials) String() string {
	return fmt.Sprintf("key %s, bearer %s, token %s", c.key.name, c.bearer.name, c.token.name)
}

// publicKey is a value of X-Public-Key.
type publicKey struct {
	name, value string
	store       int64 // 0 if no store has it
}

// cartToken is a value of X-Cart-Token. A malformed one counts as none.
type cartToken struct {
	name, value string
	usable      bool
}

// bearer is the values of Authorization, with their meaning.
type bearer struct {
	name    string
	values  []string
	kind    bearerKind
	sub     string // of a customer
	store   int64  // of a customer or a program; 0 if the token names none
	refused string // API tokens with the same text here must get the same refusal; "" for other tokens
}

type bearerKind int

const (
	absent bearerKind = iota
	basic             // another scheme: a guest for the cart, nobody for subscriptions
	customerJWT
	storeProgram
	invalid
)

// visits returns the sender of a cart request with these credentials.
func (c credentials) visits(defaultStore int64) visitor {
	if c.bearer.kind == invalid || c.bearer.kind == storeProgram {
		return refusedVisitor(401, "unauthenticated")
	}
	isCustomer := c.bearer.kind == customerJWT
	home := c.bearer.store // of a customer
	if isCustomer && home == 0 {
		home = defaultStore
	}
	store := c.key.store
	switch {
	case c.key.value != "" && store == 0:
		return refusedVisitor(400, "store_unknown")
	case isCustomer && home == 0, isCustomer && store != 0 && store != home:
		return refusedVisitor(401, "unauthenticated")
	case isCustomer && home > storeTwo:
		return refusedVisitor(400, "store_unknown")
	case isCustomer:
		store = home
	case store == 0 && defaultStore == 0:
		return refusedVisitor(400, "store_required")
	case store == 0:
		store = defaultStore
	}
	v := visitor{store: store, cart: cartOf{store: store, sub: c.bearer.sub}}
	guest := cartOf{store: store, token: c.token.value}
	if !c.token.usable {
		guest = cartOf{}
	}
	if isCustomer {
		v.guest = guest
	} else {
		v.cart = guest
	}
	return v
}

// programs returns the sender of a request for subscriptions with these credentials. Other
// headers do not matter.
func (c credentials) programs() visitor {
	if c.bearer.kind != storeProgram {
		return refusedVisitor(401, "unauthenticated")
	}
	return visitor{store: c.bearer.store}
}

func refusedVisitor(status int, code string) visitor { return visitor{status: status, code: code} }

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
