package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// CartToken is a guest's secret: whoever has it can use the cart. Formatted, logged or
// marshaled it is "[cart token]". Reveal returns its text.
type CartToken string

const (
	minCartToken    = 22 // characters: 128 bits in base64url
	maxCartToken    = 128
	hiddenCartToken = "[cart token]"
)

// ParseCartToken returns s as a token. ok is false unless s has 22 to 128 characters of
// A-Za-z0-9_-. A cart for the token may not exist.
func ParseCartToken(s string) (CartToken, bool) {
	if len(s) < minCartToken || len(s) > maxCartToken || !wordOnly(s) {
		return "", false
	}
	return CartToken(s), true
}

// minDistinct is how many different characters a client's token has. Of random tokens of 22 hexadecimal digits, 6 in
// 10^14 have fewer.
const minDistinct = 4

// constant reports whether t has so few different characters that many clients may send it, such as the
// advertising ID that a phone gives if its user refuses one: 00000000-0000-0000-0000-000000000000.
func (t CartToken) constant() bool {
	distinct := 0
	for i := 0; i < len(t) && distinct < minDistinct; i++ {
		if strings.IndexByte(string(t), t[i]) == i {
			distinct++
		}
	}
	return distinct < minDistinct
}

// GuessableKey reports whether an idempotency key, from which a secret would be derived, is too short for 128 random
// bits, or that advertising ID. Other constants look like random keys.
func GuessableKey(key string) bool {
	return len(key) < minCartToken || strings.Trim(key, "0-") == ""
}

// NewCartToken returns a token of 128 bits from rand.
func NewCartToken(rand io.Reader) (CartToken, error) {
	var bits [16]byte
	if _, err := io.ReadFull(rand, bits[:]); err != nil {
		return "", fmt.Errorf("read 128 random bits: %w", err)
	}
	return CartToken(base64.RawURLEncoding.EncodeToString(bits[:])), nil
}

// Digest is the token in a Redis key: 128 bits of its SHA-256 in 22 characters of base64url.
func (t CartToken) Digest() string { return digest128(string(t)) }

// Reveal returns the token's text. Use it only for the response to its owner.
func (t CartToken) Reveal() string { return string(t) }

func (CartToken) String() string { return hiddenCartToken }

// Format hides the token with every verb.
func (CartToken) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hiddenCartToken) }

// MarshalText hides the token from slog, and in values that are marshaled.
func (CartToken) MarshalText() ([]byte, error) { return []byte(hiddenCartToken), nil }

const (
	maxSubject     = 255 // characters
	maxCustomerKey = 64  // characters of a subject that is its own key
)

// validSubject reports whether s can be a customer's ID: 1 to 255 characters of UTF-8.
// All characters are allowed: see CustomerKey.
func validSubject(s string) bool {
	return s != "" && len(s) <= maxSubject*utf8.UTFMax && utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxSubject
}

// CustomerKey returns a customer's part of a Redis key: the subject itself if it has 1 to
// 64 characters of A-Za-z0-9_-, else '~' and its digest. The first form never contains
// '~', so the two cannot collide.
func CustomerKey(sub string) string {
	if sub != "" && len(sub) <= maxCustomerKey && wordOnly(sub) {
		return sub
	}
	return "~" + digest128(sub)
}

// digest128 returns the first 128 bits of the SHA-256 of s, in base64url.
func digest128(s string) string {
	sum := sha256.Sum256([]byte(s))
	var room [22]byte // of the result, which alone is allocated
	return string(base64.RawURLEncoding.AppendEncode(room[:0], sum[:16]))
}

// wordOnly reports whether all characters of s are in A-Za-z0-9_-.
func wordOnly(s string) bool {
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
