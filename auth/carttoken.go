package auth

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
)

// CartToken opens the guest cart that lies under it: whoever has it has the
// cart. Formatted, logged or marshalled it shows as "[cart token]"; Reveal
// returns its text.
type CartToken string

const (
	minCartToken    = 22 // characters: 128 bits in base64url
	maxCartToken    = 128
	hiddenCartToken = "[cart token]"
)

// ParseCartToken returns s as a token where it has a token's form, 22 to 128
// of A-Za-z0-9_-. Whether a cart lies under it is not known here.
func ParseCartToken(s string) (CartToken, bool) {
	if len(s) < minCartToken || len(s) > maxCartToken || !wordOnly(s) {
		return "", false
	}
	return CartToken(s), true
}

// NewCartToken returns a token of 128 bits of rand.
func NewCartToken(rand io.Reader) (CartToken, error) {
	var bits [16]byte
	if _, err := io.ReadFull(rand, bits[:]); err != nil {
		return "", fmt.Errorf("read 128 random bits: %w", err)
	}
	return CartToken(base64.RawURLEncoding.EncodeToString(bits[:])), nil
}

// Digest returns what stands for the token in keys: its SHA-256 cut to 128
// bits, as 22 characters of base64url.
func (t CartToken) Digest() string { return digest128(string(t)) }

// Reveal returns the token's text, for its owner's answer and nothing else.
func (t CartToken) Reveal() string { return string(t) }

func (CartToken) String() string { return hiddenCartToken }

// Format hides the token under every verb.
func (CartToken) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hiddenCartToken) }

// LogValue hides the token from slog.
func (CartToken) LogValue() slog.Value { return slog.StringValue(hiddenCartToken) }

// MarshalText hides the token inside whatever is logged as JSON.
func (CartToken) MarshalText() ([]byte, error) { return []byte(hiddenCartToken), nil }
