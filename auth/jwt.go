package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"commerce/auth/bounded"
	"commerce/auth/problem"
)

const (
	minJWTSecret = 32 // bytes: RFC 7518, section 3.2
	maxJWT       = 8 << 10
	jwtLeeway    = 30 * time.Second
)

type JWTConfig struct {
	// Secret signs and verifies HS256. It has at least 32 bytes. PreviousSecret only
	// verifies; nil for none.
	Secret, PreviousSecret []byte

	// JWKS verifies RS256, ES256 and EdDSA. If it is set, HS256 is refused whatever
	// Secret is, so that a public key cannot be used as a secret.
	JWKS *JWKS

	Issuer, Audience string           // required iss, and value of aud; "": not checked
	Now              func() time.Time // default time.Now
}

// JWT verifies and signs customers' JSON Web Tokens, as RFC 8725 advises.
type JWT struct {
	cfg      JWTConfig
	parser   *jwt.Parser
	keyFor   func(context.Context, *jwt.Token) (any, error)
	verified *bounded.Cache[tokenDigest, verifiedToken]
}

// CheckJWTSecret returns an error if a secret is too short for HS256.
func CheckJWTSecret(secret []byte) error {
	if len(secret) < minJWTSecret {
		return fmt.Errorf("must have at least %d bytes, and has %d", minJWTSecret, len(secret))
	}
	return nil
}

// NewJWT returns an error that names the setting that is missing or too short.
func NewJWT(cfg JWTConfig) (*JWT, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	j := &JWT{cfg: cfg, verified: bounded.New[tokenDigest, verifiedToken](maxVerified, nil)}
	var methods []string
	switch {
	case cfg.JWKS != nil:
		methods = []string{"RS256", "ES256", "EdDSA"}
		j.keyFor = cfg.JWKS.keyFor
	case CheckJWTSecret(cfg.Secret) != nil:
		return nil, fmt.Errorf("JWT_SECRET %w", CheckJWTSecret(cfg.Secret))
	case len(cfg.PreviousSecret) > 0 && CheckJWTSecret(cfg.PreviousSecret) != nil:
		return nil, fmt.Errorf("JWT_SECRET_PREVIOUS %w", CheckJWTSecret(cfg.PreviousSecret))
	default:
		methods = []string{"HS256"}
		j.keyFor = secrets(cfg.Secret, cfg.PreviousSecret)
	}
	// Without these options the library checks neither the algorithm, nor that exp is present,
	// nor iss, nor aud.
	options := []jwt.ParserOption{
		jwt.WithValidMethods(methods),
		jwt.WithExpirationRequired(),
		jwt.WithLeeway(jwtLeeway),
		jwt.WithTimeFunc(cfg.Now),
		jwt.WithStrictDecoding(),
	}
	if cfg.Issuer != "" {
		options = append(options, jwt.WithIssuer(cfg.Issuer))
	}
	if cfg.Audience != "" {
		options = append(options, jwt.WithAudience(cfg.Audience))
	}
	j.parser = jwt.NewParser(options...)
	return j, nil
}

// secrets returns the same keys for every token.
func secrets(current, previous []byte) func(context.Context, *jwt.Token) (any, error) {
	set := jwt.VerificationKeySet{Keys: []jwt.VerificationKey{current}}
	if len(previous) > 0 {
		set.Keys = append(set.Keys, previous)
	}
	return func(context.Context, *jwt.Token) (any, error) { return set, nil }
}

type Claims struct {
	Customer string // sub, never ""
	Store    int64  // store_id; 0: absent
	Expires  time.Time
}

// Verify returns the claims of a valid token, or a problem.Error: unauthenticated, or
// unavailable if the token's key cannot be fetched.
func (j *JWT) Verify(ctx context.Context, token string) (Claims, error) {
	// base64 decoders skip line breaks, so one token would have many forms.
	if len(token) > maxJWT || strings.ContainsAny(token, "\r\n") {
		return Claims{}, errTokenMalformed
	}
	digest, keys := tokenDigest(sha256.Sum256([]byte(token))), j.cfg.JWKS.current()
	if t, ok := j.verified.Get(digest); ok && t.valid(j.cfg.Now(), keys) {
		j.cfg.JWKS.refresh(ctx, keys)
		return t.claims, nil
	}
	var p payload
	_, err := j.parser.ParseWithClaims(token, &p, func(t *jwt.Token) (any, error) {
		if err := checkHeader(t.Header); err != nil {
			return nil, err
		}
		return j.keyFor(ctx, t)
	})
	if err != nil {
		return Claims{}, tokenError(err)
	}
	if !validSubject(p.Subject) {
		return Claims{}, errTokenSubject
	}
	store, ok := claimStore(p.storeID)
	if !ok {
		return Claims{}, errTokenStoreID
	}
	claims := Claims{Customer: p.Subject, Store: store, Expires: p.ExpiresAt.Time}
	j.remember(digest, claims, &p, keys)
	return claims, nil
}

// checkHeader refuses headers with crit or another typ. jku, x5u, jwk and x5c, which would
// let a token name its own key, are ignored.
func checkHeader(header map[string]any) error {
	if _, critical := header["crit"]; critical {
		return errTokenMalformed // no extension is supported
	}
	typ, present := header["typ"]
	name, _ := typ.(string)
	name = strings.TrimPrefix(strings.ToLower(name), "application/")
	if present && name != "jwt" && name != "at+jwt" {
		return errTokenType
	}
	return nil
}

// tokenError replaces the library's error, which may quote the token.
func tokenError(err error) error {
	if own, ok := errors.AsType[*problem.Error](err); ok {
		return own
	}
	for _, known := range []struct{ is, becomes error }{
		{jwt.ErrTokenSignatureInvalid, errTokenSignature},
		{jwt.ErrTokenExpired, errTokenExpired},
		{jwt.ErrTokenNotValidYet, errTokenNotYetValid},
		{jwt.ErrTokenInvalidIssuer, errTokenIssuer},
		{jwt.ErrTokenInvalidAudience, errTokenAudience},
		{jwt.ErrTokenRequiredClaimMissing, errTokenClaimMissing},
	} {
		if errors.Is(err, known.is) {
			return known.becomes
		}
	}
	return errTokenMalformed
}

// Sign makes a token for a customer, valid from now for ttl. With store 0 it omits store_id.
func (j *JWT) Sign(store int64, customer string, ttl time.Duration) (string, error) {
	switch {
	case j.cfg.JWKS != nil:
		return "", errors.New("sign JWT: signing needs JWT_SECRET, but JWT_JWKS_URL is set")
	case store < 0:
		return "", fmt.Errorf("sign JWT: %d is not a store's ID", store)
	case !validSubject(customer):
		return "", errors.New("sign JWT: a customer's ID must have 1 to 255 characters")
	case ttl <= 0:
		return "", fmt.Errorf("sign JWT: the lifetime %s is not positive", ttl)
	}
	now := j.cfg.Now()
	claims := jwt.MapClaims{"sub": customer, "iat": now.Unix(), "exp": now.Add(ttl).Unix()}
	if store != 0 {
		claims["store_id"] = store
	}
	if j.cfg.Issuer != "" {
		claims["iss"] = j.cfg.Issuer
	}
	if j.cfg.Audience != "" {
		claims["aud"] = j.cfg.Audience
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(j.cfg.Secret)
	if err != nil {
		return "", fmt.Errorf("sign JWT: %w", err)
	}
	return token, nil
}
