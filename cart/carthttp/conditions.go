package carthttp

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"commerce/cart"
	"commerce/cart/service"
	"commerce/cart/wire"
)

// conditionsOf reads the headers that decide whether a change is made: Idempotency-Key and
// If-Match. With the error of an invalid If-Match, the key is valid.
func conditionsOf(h http.Header) (service.Conditions, error) {
	var on service.Conditions
	key, err := idempotencyKey(h)
	if err != nil {
		return on, err
	}
	if key != "" {
		on.Key = digest(key) // it replaces the client's key in Redis
	}
	ifMatch, err := wire.ParseTags(h, "If-Match")
	on.IfMatch = versions(ifMatch)
	return on, err
}

// identify adds what a repeat of a change has in common with it: the fingerprint for its key, or
// without a key the stamp for its X-Timestamp.
func identify(on *service.Conditions, r *http.Request, basePath string, body []byte) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), basePath) // escaped as the client sent it
	if on.Key != "" {
		on.Fingerprint = digest(r.Method, path, string(body))
	} else if stamp := r.Header.Get("X-Timestamp"); stamp != "" {
		on.Stamp = digest(r.Method, path, string(body), stamp)[:cart.StampSize]
	}
}

// idempotencyKey returns the client's key for this change: 1 to 255 visible ASCII
// characters; "" when there is none.
func idempotencyKey(h http.Header) (string, error) {
	keys := h.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}
	visible := !strings.ContainsFunc(keys[0], func(r rune) bool { return r < '!' || r > '~' })
	if len(keys) > 1 || len(keys[0]) < 1 || len(keys[0]) > 255 || !visible {
		return "", wire.BadHeader("Idempotency-Key")
	}
	return keys[0], nil
}

// digest returns 96 bits over parts. Moving bytes from one part to the next changes it.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// versions returns the part before "-" of each tag, in the form of
// service.Conditions.IfMatch. Only that part is compared, so that a new price or another
// language never causes a version mismatch.
func versions(t wire.Tags) string {
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
