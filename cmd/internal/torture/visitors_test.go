package torture

import "fmt"

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
