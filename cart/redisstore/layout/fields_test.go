package layout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"commerce/cart"
	"commerce/deploy/assert"
)

func TestFields_RoundTrip(t *testing.T) {
	t.Parallel()
	text := rapid.StringOfN(rapid.SampledFrom([]rune(`ab1:", []\<ص`)), 0, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		var fields []cart.FieldValue
		for range rapid.IntRange(0, 3).Draw(t, "fields") {
			fields = append(fields, cart.FieldValue{Name: text.Draw(t, "name"), Value: text.Draw(t, "value")})
		}
		stored := encodeFields(fields)
		got, err := decodeFields(stored)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fields, got); diff != "" {
			t.Fatalf("stored as %q (-want +got)\n%s", stored, diff)
		}
	})
}

func TestDecodeFields_RefusesAnotherLayout(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"3", "3 ", "3 {}", `3 ["a"]`, `3 [["a","b","c"]]`, `3 [["a","b"] ,["c","d"]`, `[["a","b"]]`} {
		got, err := decodeFields(s)
		assert.That(t, err != nil, "%q was decoded as %q", s, got)
	}
}
