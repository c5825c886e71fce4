package auth

import (
	"net/http"
	"strings"
)

// bearer returns the token of the Authorization header. An empty header counts as none. The
// token is "" if the header is present but is not exactly one "Bearer <token>", so that two
// headers do not make the sender a guest.
//
// foreign is whether the header has another scheme, such as the Basic authentication of a staging
// site in front of the service. On cart calls, such a header counts as none, and its sender is a
// guest. A single word is not a scheme: it may be a token without "Bearer".
func bearer(h http.Header) (token string, present, foreign bool) {
	values := h["Authorization"]
	if len(values) != 1 || values[0] == "" {
		return "", len(values) > 1, false
	}
	scheme, credentials, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", true, scheme != "" && credentials != ""
	}
	return strings.TrimLeft(credentials, " "), true, false
}

// maxPublicKey is the longest X-Public-Key that is looked up, in bytes.
const maxPublicKey = 255

// publicKey returns the X-Public-Key header, "" if it is absent or empty. It refuses keys
// that no store can have: for text that is not UTF-8, a database would return an error
// that looks like an outage.
func publicKey(h http.Header) (string, error) {
	var key string
	for _, v := range h["X-Public-Key"] {
		switch {
		case v == "" || v == key:
		case key == "":
			key = v
		default:
			return "", errPublicKeyRepeated
		}
	}
	if key != "" && !isPublicKey(key) {
		return "", errStoreUnknown
	}
	return key, nil
}

func isPublicKey(key string) bool {
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	return key != "" && len(key) <= maxPublicKey && !strings.ContainsFunc(key, strange)
}

// cartToken returns X-Cart-Token, "" if it is absent, repeated, malformed or a constant.
func cartToken(h http.Header) CartToken {
	values := h["X-Cart-Token"]
	if len(values) != 1 {
		return ""
	}
	token, _ := ParseCartToken(values[0])
	if token.constant() {
		return ""
	}
	return token
}
