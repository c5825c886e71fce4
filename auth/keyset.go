package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

const (
	minRSA   = 2048 // bits
	maxRSA   = 8192 // larger ones take milliseconds to verify
	maxKeys  = 64   // in one set
	maxKeyID = 255  // bytes
)

// keyName identifies a key. It includes the algorithm, since each key is used for one
// algorithm only.
type keyName struct {
	id  string // kid; "" for none
	alg string
}

func keyNameOf(t *jwt.Token) (name keyName, ok bool) {
	kid, present := t.Header["kid"]
	id, isText := kid.(string)
	return keyName{id, t.Method.Alg()}, (isText || !present) && len(id) <= maxKeyID
}

type verificationKey struct {
	keyName
	public any // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// keySet is an issuer's key set at one time. nil is an empty set.
type keySet struct {
	keys    []verificationKey
	fetched time.Time // when the fetch began
}

// The results of find.
type keyState int

const (
	keyAbsent keyState = iota // a newer set may have it
	keyMisfit                 // the ID is known, for another algorithm
	keyFound
)

// trusted reports whether the set is recent enough to be used.
func (s *keySet) trusted() bool { return s != nil && time.Since(s.fetched) < jwksTrust }

// find looks up a key. A name without an ID matches the only key of its algorithm.
func (s *keySet) find(name keyName) (any, keyState) {
	if !s.trusted() {
		return nil, keyAbsent
	}
	var key any
	state := keyAbsent
	for _, k := range s.keys {
		switch {
		case name.id == "" && k.alg == name.alg && state == keyFound:
			return nil, keyMisfit // ambiguous
		case name.id == "" && k.alg == name.alg, k.keyName == name:
			key, state = k.public, keyFound
		case name.id != "" && k.id == name.id && state == keyAbsent:
			state = keyMisfit
		}
	}
	return key, state
}

// parseKeys reads a JWK set (RFC 7517, section 5). It ignores keys that cannot be used, as
// that section requires, and all but the first key with an ID and algorithm.
func parseKeys(text []byte) ([]verificationKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New("not a JWK set")
	}
	var keys []verificationKey
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		key, ok := parseKey(raw)
		again := key.id != "" && slices.ContainsFunc(keys, func(k verificationKey) bool { return k.keyName == key.keyName })
		if ok && !again {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no usable key in the JWK set")
	}
	return keys, nil
}

// parseKey reads one public key. It returns false for a key that has another use, is too
// weak or malformed, or has an unsupported type.
func parseKey(text []byte) (key verificationKey, ok bool) {
	var m jwkset.JWKMarshal
	if json.Unmarshal(text, &m) != nil {
		return key, false
	}
	// Certificates are not needed: the key comes from its issuer.
	m.X5U, m.X5C, m.X5T, m.X5TS256 = "", nil, "", ""
	if m.USE != "" && m.USE != jwkset.UseSig || len(m.KID) > maxKeyID {
		return key, false
	}
	if len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify) {
		return key, false
	}
	jwk, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return key, false
	}
	key = verificationKey{keyName{id: m.KID, alg: algorithmOf(jwk.Key())}, jwk.Key()}
	return key, key.alg != "" && (m.ALG == "" || m.ALG.String() == key.alg)
}

// algorithmOf returns the algorithm of a key, "" if it is not supported.
func algorithmOf(key any) string {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits >= minRSA && bits <= maxRSA {
			return "RS256"
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return "ES256"
		}
	case ed25519.PublicKey:
		return "EdDSA"
	}
	return ""
}
