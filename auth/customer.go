package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"unicode/utf8"
)

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
