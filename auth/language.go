package auth

import (
	"net/http"

	"commerce/auth/locale"
)

// Language returns the language of r's store, "" if the store cannot be found. Unlike
// Identify it ignores an invalid X-Public-Key or Bearer token.
func (c *CartCallers) Language(r *http.Request) locale.Locale {
	key, _ := publicKey(r.Header)
	claims, _ := c.customer(r)
	store, _ := c.store(r.Context(), key, claims)
	if store == nil {
		store, _ = c.home(r.Context())
	}
	if store == nil {
		return ""
	}
	return store.Locale
}
