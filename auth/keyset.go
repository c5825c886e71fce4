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
	maxRSA   = 8192 // larger ones cost milliseconds a check
	maxKeys  = 64   // of one set
	maxKeyID = 255  // bytes
)

// keyName is how a token names its key. The algorithm belongs to the name: a
// key serves one, and no token talks it into another.
type keyName struct {
	id  string // kid; "" where the token gives none
	alg string
}

// keyNameOf reads a token's kid and alg.
func keyNameOf(t *jwt.Token) (keyName, bool) {
	name := keyName{alg: t.Method.Alg()}
	kid, present := t.Header["kid"]
	if !present {
		return name, true
	}
	id, ok := kid.(string)
	name.id = id
	return name, ok && len(id) <= maxKeyID
}

// verificationKey is a public key fit to verify one algorithm.
type verificationKey struct {
	keyName
	public any // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// keySet is what an issuer published at one time. Nil is a set without keys.
type keySet struct {
	keys    []verificationKey
	fetched time.Time // when the fetch began
}

// What find may say of a key.
type keyState int

const (
	keyAbsent keyState = iota // fetching the set anew may bring it
	keyMisfit                 // the id is known, and not for this
	keyFound
)

// find looks a key up. A token without a kid is served where exactly one key
// of the set fits its algorithm.
func (s *keySet) find(name keyName) (any, keyState) {
	if s == nil {
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

// parseKeys reads a JWK set (RFC 7517, section 5) and keeps the keys we can
// use. Others are passed over, as that section asks.
func parseKeys(text []byte) ([]verificationKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New("not a JWK set")
	}
	var keys []verificationKey
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		if key, ok := parseKey(raw); ok && !slices.ContainsFunc(keys, key.sameName) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no usable key in the JWK set")
	}
	return keys, nil
}

// sameName says whether both keys have one name. Keys without an id have none.
func (k verificationKey) sameName(other verificationKey) bool {
	return k.id != "" && k.keyName == other.keyName
}

// parseKey reads one public key. It is not ok where the key is for another
// use, too weak, damaged, or of a kind we do not verify with.
func parseKey(text []byte) (verificationKey, bool) {
	var m jwkset.JWKMarshal
	if json.Unmarshal(text, &m) != nil {
		return verificationKey{}, false
	}
	// A certificate adds nothing to a key that comes from its issuer.
	m.X5U, m.X5C, m.X5T, m.X5TS256 = "", nil, "", ""
	if m.USE != "" && m.USE != jwkset.UseSig || len(m.KID) > maxKeyID {
		return verificationKey{}, false
	}
	if len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify) {
		return verificationKey{}, false
	}
	jwk, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return verificationKey{}, false
	}
	alg := algorithmOf(jwk.Key())
	if alg == "" || m.ALG != "" && m.ALG.String() != alg {
		return verificationKey{}, false
	}
	return verificationKey{keyName{id: m.KID, alg: alg}, jwk.Key()}, true
}

// algorithmOf returns the one algorithm a key verifies, "" where it is none of
// ours.
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
