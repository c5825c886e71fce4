package cart

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/auth/problem"
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

// A second click, or a proxy that repeats a DELETE by itself, must not remove another line.
func TestItem_NamesNoOtherLineOnceItsOwnIsRemoved(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000, 0)
	bare, other := Line{ID: "801", Quantity: 1}, Line{ID: "801.fAAAAAAAAAAAAAAAA", Quantity: 2}
	r := Request{Change: Change{Rule: Remove(Item{ID: "801"})}, Mark: "M", TTL: time.Hour}
	removed := r.Decide(Cell{Cart: cartOf(bare, other)}, at).Cell
	assert.Equal(t, removed.Lines, []Line{other}, "after the first click")

	for name, test := range map[string]struct {
		item  Item
		after time.Duration
		want  problem.Code // "": it is removed
	}{
		"again":                    {Item{ID: "801"}, time.Second, problem.ItemNotFound},
		"again, almost too late":   {Item{ID: "801"}, 5 * time.Minute, problem.ItemNotFound},
		"a new click":              {Item{ID: "801"}, 5*time.Minute + time.Second, ""},
		"the other line by its ID": {Item{ID: other.ID}, time.Second, ""},
		"a product in a list":      {Item{ID: "801", OnlyIDs: true}, time.Hour, problem.ItemNotFound},
		"another product":          {Item{ID: "80"}, time.Hour, problem.ItemNotFound},
		"no line can have this ID": {Item{}, time.Hour, problem.ItemNotFound},
		"a plan that is not there": {Item{ID: "801.p1"}, time.Hour, problem.ItemNotFound},
		"the other one, in a list": {Item{ID: other.ID, OnlyIDs: true}, time.Second, ""},
	} {
		_, none := test.item.in(&removed, at.Add(test.after))
		var got problem.Code
		if none != nil {
			got = none.Code
		}
		assert.Equal(t, got, test.want, "%s", name)
	}
}

func TestItem_NamesAProductOnlyIfOneLineHasIt(t *testing.T) {
	t.Parallel()
	two := Cell{Cart: cartOf(Line{ID: "4.p41", Quantity: 1}, Line{ID: "4.p42", Quantity: 1}, Line{ID: "41", Quantity: 1})}
	for _, rule := range []Rule{Remove(Item{ID: "4"}), SetQuantity(Item{ID: "4"}, 0, anyQuantity, ""), SetQuantity(Item{ID: "4"}, 2, anyQuantity, "")} {
		assert.Equal(t, rule(&two, roomy, time.Now()).Refusal, &Refusal{Code: AmbiguousItem}, "two lines")
	}
	one := Cell{Cart: cartOf(Line{ID: "4.p41", Quantity: 1}, Line{ID: "41", Quantity: 1})}
	assert.Equal(t, Remove(Item{ID: "4"})(&one, roomy, time.Now()).Cart.Lines, one.Lines[1:], "one line")
}

// An edit that joins the bare line to another one takes its ID away too.
func TestItem_RemembersWhatEveryChangeRemoves(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000, 0)
	bare, other, third := Line{ID: "801", Quantity: 1}, Line{ID: "801.p1", Quantity: 2}, Line{ID: "9", Quantity: 1}
	joins := EditLine(Item{ID: "801"}, func(l Line) (EditedLine, *problem.Error) {
		return EditedLine{From: l, ID: other.ID, Bounds: anyQuantity}, nil
	})
	for name, rule := range map[string]Rule{
		"DELETE":       Remove(Item{ID: "801"}),
		"PATCH with 0": SetQuantity(Item{ID: "801"}, 0, Bounds{}, ""),
		"a join":       joins,
		"a list":       List(true, []Rule{Remove(Item{ID: "9"}), Remove(Item{ID: "801", OnlyIDs: true})}),
	} {
		r := Request{Change: Change{Rule: rule}, Mark: "M", TTL: time.Hour, Limits: roomy}
		after := r.Decide(Cell{Cart: cartOf(bare, other, third)}, at).Cell
		assert.That(t, after.Removed.Has("801", at), "%s: %+v", name, after.Removed)
	}
	r := Request{Change: Change{Rule: Remove(Item{ID: "9"})}, Mark: "M", TTL: time.Hour}
	alone := r.Decide(Cell{Cart: cartOf(bare, other, third)}, at).Cell
	assert.That(t, len(alone.Removed) == 0, "an only line is remembered: %+v", alone.Removed)
}
