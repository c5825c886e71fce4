package carthttp

import (
	"maps"
	"strings"

	"commerce/auth"
	"commerce/auth/bounded"
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/wire"
)

// tagKey and tagged say which cart has an ETag, so that a client that has the cart already gets a 304
// without pricing or writing it. A changed store or product has another address.
type tagKey struct {
	id, mark string // these and the version name the contents of the cart
	version  int64
	token    auth.CartToken
	store    *store.Store
	language locale.Locale
	buyer    cart.Buyer // whom the request's country may make
}

type tagged struct {
	products map[int64]*cart.Product
	tag      string
}

type tagCache = bounded.Cache[tagKey, tagged]

// newTagCache returns a cache of the tags of about 10,000 carts with five lines.
func newTagCache() *tagCache {
	const overhead, product = 512, 64
	return bounded.New(8<<20, func(_ tagKey, t tagged) uint32 { return uint32(overhead + product*len(t.products)) })
}

// tagKeyOf returns the key of a cart's tag. It reports false if the tag depends on more than the key and
// the products: that of a coupon, which may be automatic, on the time and on other carts, and that of a report on the time.
func tagKeyOf(c *cart.Cart, token auth.CartToken, s *store.Store, l locale.Locale, m *cart.MergeReport, automatic bool) (tagKey, bool) {
	return tagKey{c.ID, c.Mark, c.Version, token, s, l, c.Buyer}, len(c.Coupons) == 0 && !automatic && m == nil
}

// tagOf returns the tag of a cart with these products, without quotes, if it is remembered.
func tagOf(cache *tagCache, key tagKey, products map[int64]*cart.Product) (tag string, ok bool) {
	known, ok := cache.Get(key)
	return strings.Trim(known.tag, `"`), ok && maps.Equal(known.products, products)
}

// remembering returns an answer that remembers its tag when it is written.
func remembering(cache *tagCache, key tagKey, products map[int64]*cart.Product, answer wire.Answer) wire.Answer {
	write := answer.Data
	answer.Data = func(w *wire.Writer) {
		write(w)
		cache.Put(key, tagged{products, w.ETag(answer.Version)})
	}
	return answer
}
