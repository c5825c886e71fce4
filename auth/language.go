package auth

import (
	"net/http"

	"commerce/auth/locale"
)

// Language returns the language of the store that r is about, "" where the store
// cannot be found. Unlike Identify it refuses nothing: an X-Public-Key or a Bearer
// token that is of no use is passed over.
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
