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

// validSubject says whether s can be a customer's id: 1 to 255 characters of
// valid text. Which ones they are matters to nobody: see CustomerKey.
func validSubject(s string) bool {
	return s != "" && len(s) <= maxSubject*utf8.UTFMax && utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxSubject
}

// CustomerKey returns what stands for a customer in keys: the subject itself
// where it is 1 to 64 of A-Za-z0-9_-, else '~' and a digest of it. No subject
// of the first kind holds a '~', so the two kinds never meet.
func CustomerKey(sub string) string {
	if sub != "" && len(sub) <= maxCustomerKey && wordOnly(sub) {
		return sub
	}
	return "~" + digest128(sub)
}

// digest128 returns the SHA-256 of s cut to 128 bits, in base64url.
func digest128(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// wordOnly says whether s holds nothing but A-Za-z0-9_-.
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
