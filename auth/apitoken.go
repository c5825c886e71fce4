package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"commerce/auth/bounded"
	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/auth/timing"
)

// APIToken is a store's API token as it is stored, without the secret.
type APIToken struct {
	ID, StoreID int64
	Name        string   // chosen by its owner
	Hash        [32]byte // SHA-256 of the secret's text
	CreatedAt   time.Time
	RevokedAt   *time.Time // nil: not revoked
	LastUsedAt  *time.Time // nil: never
}

// ErrNoAPIToken means that a source has no token with an ID. Any other error of a
// source means that it is unreachable.
var ErrNoAPIToken = errors.New("auth: no such API token")

// APITokenSource finds API tokens, including revoked ones.
type APITokenSource interface {
	APIToken(ctx context.Context, id int64) (APIToken, error)
}

const (
	minAPISecret = 40 // characters
	maxAPISecret = 128
	newAPISecret = 43 // characters that hold 256 bits in base 62
)

// NewAPISecret returns 256 random bits as 43 characters of A-Za-z0-9, and the SHA-256 to store.
func NewAPISecret() (secret string, sum [32]byte) {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails
	digits := new(big.Int).SetBytes(bits[:]).Text(62)
	secret = strings.Repeat("0", newAPISecret-len(digits)) + digits
	return secret, sha256.Sum256([]byte(secret))
}

// ParseAPIToken splits "<id>|<secret>". ok is true if the ID is a positive decimal
// without leading zeros and the secret has 40 to 128 characters of A-Za-z0-9.
func ParseAPIToken(s string) (id int64, secret string, ok bool) {
	digits, secret, _ := strings.Cut(s, "|")
	id, ok = parseID(digits)
	if !ok || len(secret) < minAPISecret || len(secret) > maxAPISecret {
		return 0, "", false
	}
	if !wordOnly(secret) || strings.ContainsAny(secret, "_-") {
		return 0, "", false
	}
	return id, secret, true
}

// parseID reads a positive int64 without a sign, leading zeros or a fraction.
func parseID(s string) (int64, bool) {
	if s == "" || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	id, err := strconv.ParseInt(s, 10, 64)
	return id, err == nil
}

const (
	defaultAPITokenTTL = 500 * time.Millisecond
	maxAPITokens       = 10_000          // cached checks, found or not: about 1.3 MB
	apiTokenTimeout    = 2 * time.Second // of a lookup
)

type APITokensConfig struct {
	Source APITokenSource
	Stores StoreDirectory

	// TTL is how long a check is cached, from its start, and therefore the maximum
	// delay of a revocation. Default: 500 ms.
	TTL time.Duration

	Failures *limit.Quota // of the invalid tokens of a client; nil: no limit
}

type APITokens struct {
	cfg APITokensConfig

	// checks are cached by token ID only. Guessed secrets add none, and guessed IDs
	// evict none that are in use.
	checks  *bounded.Cache[int64, apiTokenCheck]
	lookups singleflight.Group
}

type apiTokenCheck struct {
	refusal *problem.Error // why the token is refused with any secret; nil if its store is set

	store *store.Store
	hash  [32]byte
	at    time.Time // when the lookup began
}

func NewAPITokens(cfg APITokensConfig) *APITokens {
	cfg.TTL = cmp.Or(cfg.TTL, defaultAPITokenTTL)
	return &APITokens{cfg: cfg, checks: bounded.New[int64, apiTokenCheck](maxAPITokens, nil)}
}

// Identify returns the store that sent r, which counts for a client, and the ID of its token.
// Its errors are problem.Errors.
func (a *APITokens) Identify(r *http.Request, client string) (store *store.Store, tokenID int64, err error) {
	token, present, _ := bearer(r.Header)
	if !present {
		return nil, 0, errAPITokenMissing
	}
	id, secret, ok := ParseAPIToken(token)
	if !ok {
		return nil, 0, countFailure(r.Context(), a.cfg.Failures, client, errAPITokenMalformed)
	}
	if tooMany := a.cfg.Failures.Refuse(client, errTooManyFailures); tooMany != nil && !a.exists(id) {
		return nil, 0, tooMany
	}
	check, err := a.check(r.Context(), id)
	if err != nil {
		return nil, 0, unavailable(fmt.Errorf("check API token %d: %w", id, err))
	}
	sum := sha256.Sum256([]byte(secret))
	matches := subtle.ConstantTimeCompare(sum[:], check.hash[:]) == 1
	switch {
	case check.refusal != nil:
		return nil, 0, countFailure(r.Context(), a.cfg.Failures, client, check.refusal)
	case !matches:
		return nil, 0, countFailure(r.Context(), a.cfg.Failures, client, errAPITokenSecret)
	}
	return check.store, id, nil
}

// exists reports whether the latest check found the token. A client that has sent too many
// invalid tokens can use only such tokens. So its guesses cause no lookups, and the tokens of
// its neighbors behind the same address keep working.
func (a *APITokens) exists(id int64) bool {
	c, ok := a.checks.Get(id)
	return ok && c.store != nil
}

// check returns a check of the token that began at most the TTL before this call.
// Concurrent calls for one token share a lookup. Errors are not cached.
func (a *APITokens) check(ctx context.Context, id int64) (apiTokenCheck, error) {
	start := time.Now()
	oldest := start.Add(-a.cfg.TTL)
	if c, ok := a.checks.Get(id); ok && c.at.After(oldest) {
		return c, nil
	}
	defer func() { timing.Add(ctx, timing.Postgres, time.Since(start)) }()
	for {
		result := a.lookups.DoChan(strconv.FormatInt(id, 10), func() (any, error) {
			return a.lookUp(timing.Detach(ctx), id)
		})
		select {
		case <-ctx.Done():
			return apiTokenCheck{}, ctx.Err()
		case r := <-result:
			// A shared lookup that is slow may have begun before a revocation that
			// this call must see. The next one did not.
			if c := r.Val.(apiTokenCheck); r.Err != nil || c.at.After(oldest) {
				return c, r.Err
			}
		}
	}
}

func (a *APITokens) lookUp(ctx context.Context, id int64) (apiTokenCheck, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTokenTimeout)
	defer cancel()
	check := apiTokenCheck{at: time.Now()}
	token, err := a.cfg.Source.APIToken(ctx, id)
	if err == nil && token.RevokedAt == nil {
		check.hash = token.Hash
		if check.store, err = a.cfg.Stores.ByID(ctx, token.StoreID); err != nil {
			err = fmt.Errorf("find store %d: %w", token.StoreID, err)
		}
	}
	switch {
	case errors.Is(err, ErrNoAPIToken), errors.Is(err, ErrNoStore):
		check.refusal = errAPITokenUnknown
	case err != nil:
		return check, err
	case token.RevokedAt != nil:
		check.refusal = errAPITokenRevoked
	}
	a.checks.Put(id, check)
	return check, nil
}
