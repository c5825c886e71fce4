// Package sealed derives and seals everything that HANDOVER_KEY protects: codes of hand-overs,
// and the ids and tokens that only this service can compute.
package sealed

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	minKey      = 32 // bytes of a key
	nameLength  = 4
	saltLength  = 16
	nonceLength = 12 // of AES-GCM
)

// Keys holds the current key and the previous one, under which older codes and ids stay valid.
// A nil *Keys has no key: it derives and opens nothing, and must not Seal.
type Keys struct {
	current  key
	previous *key
	random   io.Reader // of salts
}

type key struct {
	name   string
	secret []byte
}

// New returns the keys, or nil if current is empty. Each has at least 32 bytes; previous may be empty.
func New(current, previous string) (*Keys, error) {
	if current == "" {
		if previous != "" {
			return nil, errors.New("is missing, but there is a previous key")
		}
		return nil, nil
	}
	if err := cmp.Or(Check(current), Check(previous)); err != nil {
		return nil, err
	}
	keys := &Keys{current: newKey(current), random: rand.Reader}
	if previous == "" || previous == current {
		return keys, nil
	}
	if keys.previous = new(newKey(previous)); keys.previous.name == keys.current.name {
		return nil, errors.New("has the same name as the previous key, by a chance of one in 15 million: choose another key")
	}
	return keys, nil
}

// WithRandom returns the keys with another source of salts, which a simulation decides.
func (k Keys) WithRandom(random io.Reader) *Keys {
	k.random = random
	return &k
}

// Check returns what is wrong with a key. An empty key means none.
func Check(secret string) error {
	if secret != "" && len(secret) < minKey {
		return fmt.Errorf("must have at least %d bytes, and has %d", minKey, len(secret))
	}
	return nil
}

func newKey(secret string) key {
	k := key{secret: []byte(secret)}
	name := k.expand(nil, "name")
	for i := range name[:nameLength] {
		name[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[name[i]%62]
	}
	k.name = string(name[:nameLength])
	return k
}

func (k key) expand(salt []byte, use string) []byte {
	out, err := hkdf.Key(sha256.New, k.secret, salt, use, sha256.Size)
	if err != nil {
		panic(err) // only for lengths that SHA-256 cannot give
	}
	return out
}

// Name returns the name of the current key: 4 characters of A-Za-z0-9, the prefix of everything sealed under
// it. It is empty without a key.
func (k *Keys) Name() string {
	if k == nil {
		return ""
	}
	return k.current.name
}

// Previous is the name of the previous key, or empty.
func (k *Keys) Previous() string {
	if k == nil || k.previous == nil {
		return ""
	}
	return k.previous.name
}

func (k *Keys) named(name string) (key, bool) {
	switch {
	case k == nil:
		return key{}, false
	case name == k.current.name:
		return k.current, true
	case k.previous != nil && name == k.previous.name:
		return *k.previous, true
	}
	return key{}, false
}

// Knows reports whether a text begins with the name of one of the keys, as everything does that was derived or sealed
// under it.
func (k *Keys) Knows(text string) bool {
	_, ok := k.named(text[:min(nameLength, len(text))])
	return ok
}

// Derive returns an HMAC of the parts, with a key that it derives from the named key for the label. Parts that
// are divided differently have another sum. It reports false if no key has the name.
func (k *Keys) Derive(name, label string, parts ...string) (sum [sha256.Size]byte, ok bool) {
	of, ok := k.named(name)
	if !ok {
		return sum, false
	}
	mac := hmac.New(sha256.New, of.expand(nil, "derive "+label))
	for _, part := range parts {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	mac.Sum(sum[:0])
	return sum, true
}

// Seal encrypts text for a purpose under the current key: its name, then a salt and the ciphertext in base64url.
func (k *Keys) Seal(purpose string, text []byte) string {
	salt := make([]byte, saltLength)
	_, _ = io.ReadFull(k.random, salt) // never fails
	return encode(k.current, k.current.aead(salt, purpose).Seal(salt, make([]byte, nonceLength), text, nil))
}

// Open returns the text that Seal encrypted for the purpose. It reports false for anything else, also for
// another spelling of the same bytes: one code is one string.
func (k *Keys) Open(purpose, sealed string) ([]byte, bool) {
	of, ok := k.named(sealed[:min(nameLength, len(sealed))])
	if !ok {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(sealed[nameLength:])
	if err != nil || len(raw) < saltLength || encode(of, raw) != sealed {
		return nil, false
	}
	text, err := of.aead(raw[:saltLength], purpose).Open(nil, make([]byte, nonceLength), raw[saltLength:], nil)
	return text, err == nil
}

func encode(of key, raw []byte) string { return of.name + base64.RawURLEncoding.EncodeToString(raw) }

// aead returns the cipher of one salt and purpose. It encrypts one text only, so that its nonce can be constant.
func (k key) aead(salt []byte, purpose string) cipher.AEAD {
	block, err := aes.NewCipher(k.expand(salt, "seal "+purpose))
	if err != nil {
		panic(err) // only for a key of another length
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // only for another block size
	}
	return gcm
}
