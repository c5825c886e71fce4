package carthttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"commerce/cart/service"
	"commerce/cart/wire"
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
		if got := versions(tags); got != want {
			t.Errorf("%+v: %q, want %q", tags, got, want)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("k", 255)
	for _, key := range []string{"k", "!", "~", "order-1/2:3", longest} {
		if got, err := idempotencyKey(http.Header{"Idempotency-Key": {key}}); err != nil || got != key {
			t.Errorf("%.20q: %.20q, %v", key, got, err)
		}
	}
	for _, values := range [][]string{{""}, {"a b"}, {"a\x00"}, {"a\x7f"}, {"é"}, {longest + "k"}, {"a", "a"}} {
		if got, err := idempotencyKey(http.Header{"Idempotency-Key": values}); err == nil {
			t.Errorf("%.20q was accepted as %.20q", values, got)
		}
	}
	if got, err := idempotencyKey(http.Header{}); got != "" || err != nil {
		t.Errorf("without the header: %q, %v", got, err)
	}
}

func TestConditionsOf_TellsRequestsApart(t *testing.T) {
	t.Parallel()
	of := func(method, path, body string, headers ...string) service.Conditions {
		r := httptest.NewRequest(method, path, nil)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		on, err := conditionsOf(r.Header)
		if err != nil {
			t.Fatal(err)
		}
		identify(&on, r, "/api", []byte(body))
		return on
	}
	for _, header := range []string{"Idempotency-Key", "X-Timestamp"} {
		one := of("POST", "/cart/add", `{"product_id":1}`, header, "1")
		if again := of("POST", "/cart/add", `{"product_id":1}`, header, "1"); again != one {
			t.Errorf("%s: a repeat is another request", header)
		}
		if based := of("POST", "/api/cart/add", `{"product_id":1}`, header, "1"); based != one {
			t.Errorf("%s: under the base path it is another request", header)
		}
		for name, other := range map[string]service.Conditions{
			"method": of("PATCH", "/cart/add", `{"product_id":1}`, header, "1"),
			"path":   of("POST", "/cart/coupon", `{"product_id":1}`, header, "1"),
			"body":   of("POST", "/cart/add", `{"product_id":11}`, header, "1"),
			"value":  of("POST", "/cart/add", `{"product_id":1}`, header, "2"),
			"split":  of("POST", "/cart/ad", `d{"product_id":1}`, header, "1"),
		} {
			if other == one {
				t.Errorf("%s: another %s is the same request", header, name)
			}
		}
	}
	both := of("POST", "/cart/add", "{}", "Idempotency-Key", "1", "X-Timestamp", "1")
	if both.Key == "" || both.Stamp != "" {
		t.Errorf("with both headers, want only the key: %+v", both)
	}
	if neither := of("POST", "/cart/add", "{}"); neither != (service.Conditions{}) {
		t.Errorf("with neither header: %+v", neither)
	}
}
