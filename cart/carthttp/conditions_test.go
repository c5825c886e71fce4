package carthttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"commerce/cart/service"
	"commerce/cart/wire"
	"commerce/deploy/assert"
)

func TestVersions_AreTheTagsWithoutTheirView(t *testing.T) {
	t.Parallel()
	for want, tags := range map[string]wire.Tags{
		"":          {},
		"*":         {Any: true},
		" a.1 ":     {List: []string{"a.1-x"}},
		" a.2 ":     {List: []string{"a.2"}}, // without a view
		" a.1 a.2 ": {List: []string{"a.1-x", "a.2-y"}},
		" a,b ":     {List: []string{"a,b"}},
		" * ":       {List: []string{"*"}},
	} {
		assert.Equal(t, versions(tags), want, "%+v", tags)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("k", 255)
	for _, key := range []string{"k", "!", "~", "order-1/2:3", longest} {
		got, err := idempotencyKey(http.Header{"Idempotency-Key": {key}})
		assert.That(t, err == nil && got == key, "%.20q: %.20q, %v", key, got, err)
	}
	for _, values := range [][]string{{""}, {"a b"}, {"a\x00"}, {"a\x7f"}, {"é"}, {longest + "k"}, {"a", "a"}} {
		got, err := idempotencyKey(http.Header{"Idempotency-Key": values})
		assert.That(t, err != nil, "%.20q was accepted as %.20q", values, got)
	}
	got, err := idempotencyKey(http.Header{})
	assert.That(t, got == "" && err == nil, "without the header: %q, %v", got, err)
}

func TestConditionsOf_TellsRequestsApart(t *testing.T) {
	t.Parallel()
	of := func(method, path, body string, headers ...string) service.Conditions {
		r := httptest.NewRequest(method, path, nil)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		on := assert.Must(conditionsOf(r.Header))(t)
		identify(&on, r, "/api", []byte(body))
		return on
	}
	for _, header := range []string{"Idempotency-Key", "X-Timestamp"} {
		one := of("POST", "/cart/add", `{"product_id":1}`, header, "1")
		again := of("POST", "/cart/add", `{"product_id":1}`, header, "1")
		assert.That(t, again == one, "%s: a repeat is another request", header)
		based := of("POST", "/api/cart/add", `{"product_id":1}`, header, "1")
		assert.That(t, based == one, "%s: under the base path it is another request", header)
		for name, other := range map[string]service.Conditions{
			"method": of("PATCH", "/cart/add", `{"product_id":1}`, header, "1"),
			"path":   of("POST", "/cart/coupon", `{"product_id":1}`, header, "1"),
			"body":   of("POST", "/cart/add", `{"product_id":11}`, header, "1"),
			"value":  of("POST", "/cart/add", `{"product_id":1}`, header, "2"),
			"split":  of("POST", "/cart/ad", `d{"product_id":1}`, header, "1"),
		} {
			assert.That(t, other != one, "%s: another %s is the same request", header, name)
		}
	}
	both := of("POST", "/cart/add", "{}", "Idempotency-Key", "1", "X-Timestamp", "1")
	assert.That(t, both.Key != "" && both.Stamp == "", "with both headers, want only the key: %+v", both)
	neither := of("POST", "/cart/add", "{}")
	assert.That(t, neither == (service.Conditions{}), "with neither header: %+v", neither)
}
