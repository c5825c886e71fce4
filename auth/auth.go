// Package auth identifies callers and their stores: a guest by a cart token, a customer
// by a JSON Web Token, a store by an API token.
//
// Every request calls one of the Identify methods. They keep no sessions and write
// nothing. Their errors are problem.Errors.
package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
)

// Caller is who sent a cart request.
type Caller struct {
	Store *store.Store // never nil

	// Customer is the subject of the caller's JWT, "" for a guest.
	Customer string

	// Token is the guest's cart token, "" if the request has none or a malformed
	// one. A customer may send one too: then that cart is to be merged.
	Token CartToken

	Expires time.Time // exp of the caller's JWT, without leeway; zero for a guest

	Client string // that the request counts for, as it was passed to Identify
}

type Config struct {
	Stores   StoreDirectory
	Tokens   *JWT         // verifies customers' JWTs; nil: every Bearer token is refused
	Failures *limit.Quota // of the invalid tokens of a client; nil: no limit

	// DefaultStore is the ID of the store of requests that name none, and of JWTs
	// without a store_id. 0: the only store, if there is exactly one.
	DefaultStore int64
}

type CartCallers struct{ cfg Config }

func NewCartCallers(cfg Config) *CartCallers { return &CartCallers{cfg} }

// Identify returns the sender of r, which counts for a client. Its errors are problem.Errors.
//
// It verifies the Bearer token first: an invalid one is unauthenticated, whatever else is
// wrong, and never makes its sender a guest. Then it finds the store: by X-Public-Key,
// else by the JWT's store_id, else the default. Last, a customer's token must belong to
// that store. A malformed cart token is not an error: it counts as none, and the client
// gets a new one.
func (c *CartCallers) Identify(r *http.Request, client string) (Caller, error) {
	claims, err := c.customer(r)
	if err != nil {
		return Caller{}, countFailure(r.Context(), c.cfg.Failures, client, err)
	}
	key, err := publicKey(r.Header)
	if err != nil {
		return Caller{}, err
	}
	store, err := c.store(r.Context(), key, claims)
	if err != nil {
		return Caller{}, err
	}
	return Caller{Store: store, Customer: claims.Customer, Token: cartToken(r.Header), Expires: claims.Expires, Client: client}, nil
}

// customer returns the claims of r's JWT. They are zero for a guest.
func (c *CartCallers) customer(r *http.Request) (Claims, error) {
	token, present, foreign := bearer(r.Header)
	switch {
	case !present || foreign:
		return Claims{}, nil
	case token == "":
		return Claims{}, errBearerMalformed
	case c.cfg.Tokens == nil:
		return Claims{}, errNoCustomers
	}
	return c.cfg.Tokens.Verify(r.Context(), token)
}

// store finds the store of a request with a public key ("" for none) and claims (zero for a
// guest). A guest may use every store, a customer only the one of the token. If that is another
// one, store returns both the store and an error.
func (c *CartCallers) store(ctx context.Context, key string, claims Claims) (*store.Store, error) {
	if key == "" {
		return c.home(ctx, claims)
	}
	store, err := c.cfg.Stores.ByPublicKey(ctx, key)
	switch {
	case err != nil:
		return nil, refuse(err, errStoreUnknown)
	case claims.Customer == "" || claims.Store == store.ID:
		return store, nil
	case claims.Store != 0:
		return store, errOtherStore
	}
	home, err := c.home(ctx, claims)
	if err == nil && home.ID != store.ID {
		err = errOtherStore
	}
	return store, err
}

// home returns the store of a request without a public key: that of the claims, or the default.
func (c *CartCallers) home(ctx context.Context, claims Claims) (home *store.Store, err error) {
	missing := errStoreRequired
	switch {
	case claims.Store != 0:
		missing = errTokenStoreUnknown
	case claims.Customer != "":
		missing = errTokenNamesNoStore
	}
	if id := cmp.Or(claims.Store, c.cfg.DefaultStore); id != 0 {
		home, err = c.cfg.Stores.ByID(ctx, id)
	} else {
		home, err = c.cfg.Stores.Sole(ctx)
	}
	return home, refuse(err, missing)
}

// refuse turns a directory's error into missing if the store does not exist, else unavailable.
func refuse(err error, missing *problem.Error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNoStore):
		return missing
	default:
		return unavailable(fmt.Errorf("find store: %w", err))
	}
}

// AgentStore returns the store whose public key is in the path of an agent's call. It refuses Bearer tokens,
// because no agent's cart is a customer's, and counts them as the client's failures.
func (c *CartCallers) AgentStore(r *http.Request, key, client string) (*store.Store, error) {
	if _, present, foreign := bearer(r.Header); present && !foreign {
		return nil, countFailure(r.Context(), c.cfg.Failures, client, errNoCustomers)
	}
	if !isPublicKey(key) {
		return nil, errNoSuchStore
	}
	store, err := c.cfg.Stores.ByPublicKey(r.Context(), key)
	return store, refuse(err, errNoSuchStore)
}

// HostStore returns the store of a host, otherwise the default one.
func (c *CartCallers) HostStore(ctx context.Context, host string) (*store.Store, error) {
	store, err := c.cfg.Stores.ByHost(ctx, host)
	if errors.Is(err, ErrNoStore) {
		if store, err = c.home(ctx, Claims{}); errors.Is(err, errStoreRequired) {
			return nil, errNoSuchStore
		}
	}
	if err == nil && len(store.PublicKeys) == 0 { // so no URL names it
		err = ErrNoStore
	}
	return store, refuse(err, errNoSuchStore)
}

// Language returns the language of r's store, "" if the store cannot be found. Unlike
// Identify it ignores an invalid X-Public-Key or Bearer token.
func (c *CartCallers) Language(r *http.Request) locale.Locale {
	key, _ := publicKey(r.Header)
	claims, _ := c.customer(r)
	store, _ := c.store(r.Context(), key, claims)
	if store == nil {
		store, _ = c.home(r.Context(), Claims{})
	}
	if store == nil {
		return ""
	}
	return store.Locale
}
