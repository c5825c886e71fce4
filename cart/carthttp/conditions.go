package carthttp

import (
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
	key, err := wire.IdempotencyKey(h)
	if err != nil {
		return on, err
	}
	if key != "" {
		on.Key = wire.Digest(key) // it replaces the client's key in Redis
	}
	ifMatch, err := wire.ParseTags(h, "If-Match")
	on.IfMatch = ifMatch.Versions()
	return on, err
}

// identify adds what a repeat of a change has in common with it: the fingerprint for its key, or
// without a key the stamp for its X-Timestamp.
func identify(on *service.Conditions, r *http.Request, basePath string, content []byte) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), basePath) // escaped as the client sent it
	if on.Key != "" {
		on.Fingerprint = wire.Digest(r.Method, path, string(content))
	} else if stamp := r.Header.Get("X-Timestamp"); stamp != "" {
		on.Stamp = wire.Digest(r.Method, path, string(content), stamp)[:cart.StampSize]
	}
}
