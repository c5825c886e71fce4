package carthttp

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cart/wire"
)

// conditionsOf reads from the headers of a change what it depends on: If-Match, and what
// tells a repeat.
func conditionsOf(r *http.Request, basePath string, body []byte) (redisstore.Conditions, error) {
	key, err := keyDigest(r.Header)
	if err != nil {
		return redisstore.Conditions{}, err
	}
	ifMatch, err := wire.ParseTags(r.Header, "If-Match")
	if err != nil {
		return redisstore.Conditions{}, err
	}
	on := redisstore.Conditions{IfMatch: versions(ifMatch)}
	path := strings.TrimPrefix(r.URL.EscapedPath(), basePath) // as it was sent
	if key != "" {
		on.Key = key
		on.Fingerprint = digest(r.Method, path, string(body))
	} else if stamp := r.Header.Get("X-Timestamp"); stamp != "" {
		on.Stamp = digest(r.Method, path, string(body), stamp)
	}
	return on, nil
}

// keyDigest stands for the client's key in Redis; "" when there is none.
func keyDigest(h http.Header) (string, error) {
	key, err := idempotencyKey(h)
	if key == "" {
		return "", err
	}
	return digest(key), nil
}

// idempotencyKey is the client's key for this change: 1 to 255 visible ASCII
// characters; "" when there is none.
func idempotencyKey(h http.Header) (string, error) {
	keys := h.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}
	visible := !strings.ContainsFunc(keys[0], func(r rune) bool { return r < '!' || r > '~' })
	if len(keys) > 1 || len(keys[0]) < 1 || len(keys[0]) > 255 || !visible {
		return "", problem.New(problem.InvalidParameter, "Idempotency-Key", textBadHeader, "Idempotency-Key")
	}
	return keys[0], nil
}

// digest is 96 bits over parts that cannot run together.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// versions are the tags cut to what a change is judged by, the part before "-", so that
// a new price or another language never causes a version mismatch.
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

// version is the part of a cart's ETag before "-".
func version(c *cart.Cart) string {
	id := c.ID
	if id == "" {
		id = "0"
	}
	return id + "." + strconv.FormatInt(c.Version, 10)
}

var textBadHeader = locale.Text{
	locale.En: "The header %s cannot be read.",
	locale.Ar: "تعذّرت قراءة الترويسة %s.",
}
