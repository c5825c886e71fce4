package cart

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"commerce/deploy/assert"
)

// answers generates a shopper's answers: sorted by name, each name once. The alphabet is
// small and includes the separators of the digest, so that similar answers are common.
func answers() *rapid.Generator[[]FieldValue] {
	word := rapid.StringOfN(rapid.SampledFrom([]rune(`ab1:", ص`)), 0, 4, -1)
	return rapid.Custom(func(t *rapid.T) []FieldValue {
		fields := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) FieldValue {
			return FieldValue{Name: word.Draw(t, "name"), Value: word.Draw(t, "value")}
		}), 0, 3, func(f FieldValue) string { return f.Name }).Draw(t, "fields")
		slices.SortFunc(fields, func(a, b FieldValue) int { return strings.Compare(a.Name, b.Name) })
		return fields
	})
}

func TestLineID_RoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		product := rapid.Int64Range(1, math.MaxInt64).Draw(t, "product")
		plan := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "plan")
		id := NewLineID(product, plan, answers().Draw(t, "fields"))
		if parsed, ok := ParseLineID(string(id)); !ok || parsed != id {
			t.Fatalf("%s is parsed as %q, %v", id, parsed, ok)
		}
		if id.Product() != product || id.Plan() != plan {
			t.Fatalf("%s has product %d, plan %d", id, id.Product(), id.Plan())
		}
	})
}

func TestLineID_DiffersForDifferentAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plan := rapid.Int64Range(0, 2)
		p1, p2 := plan.Draw(t, "plan"), plan.Draw(t, "other plan")
		f1, f2 := answers().Draw(t, "fields"), answers().Draw(t, "other fields")
		same := NewLineID(1, p1, f1) == NewLineID(1, p2, f2)
		if want := p1 == p2 && slices.Equal(f1, f2); same != want {
			t.Fatalf("plan %d %q and plan %d %q: same line %v", p1, f1, p2, f2, same)
		}
	})
}

func TestLineID_FormatNeverChanges(t *testing.T) {
	t.Parallel()
	fields := []FieldValue{{Name: "Account email", Value: "a@example.com"}}
	for _, tc := range []struct {
		got, want LineID
	}{
		{NewLineID(42, 0, nil), "42"},
		{NewLineID(42, 41, nil), "42.p41"},
		{NewLineID(42, 0, fields), "42.fFW3PSYWMezQ8o8nE"},
		{NewLineID(42, 41, fields), "42.p41.fFW3PSYWMezQ8o8nE"},
	} {
		if tc.got != tc.want { // carts stored in Redis have these IDs
			t.Errorf("%s, want %s", tc.got, tc.want)
		}
	}
}

func TestParseLineID_RejectsAnythingElse(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "0", "-1", "+1", "042", "42.", "42.p", "42.p0", "42.p-1", "42.p1.p2", "42.f", "42.fshort",
		"42.fAAAAAAAAAAAAAAAAA", "42.fAAAAAAAAAAAAAAA/", "42.fAAAAAAAAAAAAAAAA.p1", "42:f", "42:n", "i", "v", "m",
		" 42", "42 ", "42\n", "42\x00", "٤٢", "12345678901234567890", strings.Repeat("9", 65),
	} {
		id, ok := ParseLineID(s)
		assert.That(t, !ok && id == "", "%q was parsed as %q", s, id)
	}
}
