package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// IdempotencyKey returns the client's key for a change; "" if there is none.
func IdempotencyKey(h http.Header) (string, error) {
	const name = "Idempotency-Key"
	keys := h.Values(name)
	if len(keys) == 0 {
		return "", nil
	}
	if len(keys) > 1 || !ValidKey(keys[0]) {
		return "", BadHeader(name)
	}
	return keys[0], nil
}

// ValidKey reports whether an idempotency key is 1 to 255 visible ASCII characters.
func ValidKey(key string) bool {
	hidden := func(r rune) bool { return r < '!' || r > '~' }
	return len(key) >= 1 && len(key) <= 255 && !strings.ContainsFunc(key, hidden)
}

// Digest returns 96 bits over parts. Moving bytes from one part to the next changes it.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// Versions returns the part before "-" of each tag, in the form of service.Conditions.IfMatch. Only that part
// is compared, so that a new price or another language never causes a version mismatch.
func (t Tags) Versions() string {
	if t.Any {
		return "*"
	}
	if len(t.List) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteByte(' ')
	for _, tag := range t.List {
		version, _, _ := strings.Cut(tag, "-")
		b.WriteString(version)
		b.WriteByte(' ')
	}
	return b.String()
}
