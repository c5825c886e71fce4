package wire

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/deploy/assert"
)

func TestParseTags(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		values []string
		list   []string
		any    bool
	}{
		{name: "none"},
		{name: "any", values: []string{"*"}, any: true},
		{name: "one", values: []string{`"a.1-x"`}, list: []string{"a.1-x"}},
		{name: "weak", values: []string{`W/"a.1-x"`}, list: []string{"a.1-x"}},
		{name: "without a view", values: []string{`"a.1"`}, list: []string{"a.1"}},
		{name: "several", values: []string{`"a.1-x" , W/"a.2-y"`}, list: []string{"a.1-x", "a.2-y"}},
		{name: "several headers", values: []string{`"a.1-x"`, `"a.2-y"`}, list: []string{"a.1-x", "a.2-y"}},
		{name: "empty members", values: []string{`, "a.1-x",, `}, list: []string{"a.1-x"}},
		{name: "a comma inside", values: []string{`"a,b"`}, list: []string{"a,b"}},
		{name: "a star in quotes is a tag", values: []string{`"*"`}, list: []string{"*"}},
	} {
		got, err := ParseTags(http.Header{"If-Match": tc.values}, "If-Match")
		assert.That(t, err == nil, "%s: %v", tc.name, err)
		diff := cmp.Diff(tc.list, got.List)
		assert.That(t, diff == "" && got.Any == tc.any, "%s: any %v, tags (-want +got)\n%s", tc.name, got.Any, diff)
	}
}

func TestParseTags_RefusesInvalidHeaders(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", " ", ",", "a.1", `"a.1`, `a.1"`, `"a.1" "a.2"`, `"a.1"x`, `*, "a.1"`, `"a 1"`, "\"a\x001\"", "w/\"a\"", "W/"} {
		got, err := ParseTags(http.Header{"If-Match": {value}}, "If-Match")
		assert.That(t, err != nil, "%q was parsed as %+v", value, got)
	}
}

func TestTags_Find(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tags Tags
		want string // "" if it is not found
	}{
		"none":           {Tags{}, ""},
		"any":            {Tags{Any: true}, "a"},
		"it":             {Tags{List: []string{"b", "a"}}, "a"},
		"compressed":     {Tags{List: []string{"b-gzip", "a-gzip"}}, "a-gzip"},
		"with zstd":      {Tags{List: []string{"a-zstd"}}, "a-zstd"},
		"others":         {Tags{List: []string{"b", "A", "a "}}, ""},
		"longer ones":    {Tags{List: []string{"aa", "a-", "a-gzip-gzip"}}, ""},
		"no such coding": {Tags{List: []string{"a-rot13"}}, ""},
	} {
		known, found := tc.tags.Find("a")
		assert.That(t, found == (tc.want != "") && (!found || known == tc.want), "%s: %q, %v", name, known, found)
	}
}
