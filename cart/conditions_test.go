package cart

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEntityTags(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		values   []string
		list     []string
		any      bool
		versions string // as a change is judged by them
	}{
		{name: "none"},
		{name: "any", values: []string{"*"}, any: true, versions: "*"},
		{name: "one", values: []string{`"a.1-x"`}, list: []string{"a.1-x"}, versions: " a.1 "},
		{name: "weak", values: []string{`W/"a.1-x"`}, list: []string{"a.1-x"}, versions: " a.1 "},
		{name: "without a view", values: []string{`"a.1"`}, list: []string{"a.1"}, versions: " a.1 "},
		{name: "several", values: []string{`"a.1-x" , W/"a.2-y"`}, list: []string{"a.1-x", "a.2-y"}, versions: " a.1 a.2 "},
		{name: "several headers", values: []string{`"a.1-x"`, `"a.2-y"`}, list: []string{"a.1-x", "a.2-y"}, versions: " a.1 a.2 "},
		{name: "empty members", values: []string{`, "a.1-x",, `}, list: []string{"a.1-x"}, versions: " a.1 "},
		{name: "a comma inside", values: []string{`"a,b"`}, list: []string{"a,b"}, versions: " a,b "},
		{name: "a star in quotes is a tag", values: []string{`"*"`}, list: []string{"*"}, versions: " * "},
	} {
		got, err := entityTags(http.Header{"If-Match": tc.values}, "If-Match")
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.list, got.list); diff != "" || got.any != tc.any {
			t.Errorf("%s: any %v, tags (-want +got)\n%s", tc.name, got.any, diff)
		}
		if got.versions() != tc.versions {
			t.Errorf("%s: versions %q, want %q", tc.name, got.versions(), tc.versions)
		}
	}
}

func TestEntityTags_RefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", " ", ",", "a.1", `"a.1`, `a.1"`, `"a.1" "a.2"`, `"a.1"x`, `*, "a.1"`, `"a 1"`, "\"a\x001\"", "w/\"a\"", "W/"} {
		if got, err := entityTags(http.Header{"If-Match": {value}}, "If-Match"); err == nil {
			t.Errorf("%q was read as %+v", value, got)
		}
	}
}

func TestTags_Contain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tags tags
		want bool
	}{
		"none":          {tags{}, false},
		"any":           {tags{any: true}, true},
		"it":            {tags{list: []string{"b", "a"}}, true},
		"others":        {tags{list: []string{"b", "A", "a "}}, false},
		"its beginning": {tags{list: []string{"aa"}}, false},
	} {
		if got := tc.tags.contain("a"); got != tc.want {
			t.Errorf("%s: %v", name, got)
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
			t.Errorf("%.20q was taken for %.20q", values, got)
		}
	}
	if got, err := idempotencyKey(http.Header{}); got != "" || err != nil {
		t.Errorf("without one: %q, %v", got, err)
	}
}

func TestConditionsOf_TellsRequestsApart(t *testing.T) {
	t.Parallel()
	of := func(method, path, body string, headers ...string) Conditions {
		r := httptest.NewRequest(method, path, nil)
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		on, err := conditionsOf(r, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return on
	}
	for _, header := range []string{"Idempotency-Key", "X-Timestamp"} {
		one := of("POST", "/cart/add", `{"product_id":1}`, header, "1")
		if again := of("POST", "/cart/add", `{"product_id":1}`, header, "1"); again != one {
			t.Errorf("%s: a repeat is another request", header)
		}
		for name, other := range map[string]Conditions{
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
		t.Errorf("a key stands in for the stamp: %+v", both)
	}
	if neither := of("POST", "/cart/add", "{}"); neither != (Conditions{}) {
		t.Errorf("without either: %+v", neither)
	}
}
