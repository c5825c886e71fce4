package cart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

var decidedAt = time.Unix(1_000_000, 0)

func adding(id LineID) Rule { return Add(newLine(id, 1, anyQuantity)) }

// The order of judgement: a merge under way, a replay, If-Match, the rule.
func TestDecide_JudgesInOrder(t *testing.T) {
	t.Parallel()
	held := Cell{Cart: cartOf(Line{ID: "1", Quantity: 2}), Pending: Notes{{Name: "mA"}}, Key: KeyUse{At: decidedAt, Fingerprint: "F", Line: "1"}}
	merged := held
	merged.Pending = nil
	unkeyed := merged
	unkeyed.Key = KeyUse{}
	elsewhere := " X.1.M "
	for name, test := range map[string]struct {
		cell    Cell
		request Request
		want    Status
		code    problem.Code
	}{
		"a merge comes first":            {held, Request{Conditions: Conditions{Key: "K", Fingerprint: "F"}}, MergeFirst, ""},
		"a merge that is ignored":        {held, Request{Conditions: Conditions{Key: "K", Fingerprint: "F"}, Ignore: Notes{{Name: "mA"}}}, Replayed, ""},
		"a replay comes before If-Match": {merged, Request{Conditions: Conditions{Key: "K", Fingerprint: "F", IfMatch: elsewhere}}, Replayed, ""},
		"another request with the key":   {merged, Request{Conditions: Conditions{Key: "K", Fingerprint: "G", IfMatch: elsewhere}}, Refused, problem.IdempotencyConflict},
		"If-Match comes before the rule": {unkeyed, Request{Conditions: Conditions{IfMatch: elsewhere}, Change: Change{Rule: SetQuantity(Item{ID: "7"}, 1, anyQuantity, "")}}, Refused, problem.VersionMismatch},
		"any version":                    {unkeyed, Request{Conditions: Conditions{IfMatch: "*"}}, Applied, ""},
		"this version":                   {unkeyed, Request{Conditions: Conditions{IfMatch: " X.1.M " + unkeyed.Tag() + " "}}, Applied, ""},
		"the rule":                       {unkeyed, Request{Change: Change{Rule: SetQuantity(Item{ID: "7"}, 1, anyQuantity, "")}}, Refused, problem.ItemNotFound},
		"a cart begins":                  {Cell{}, Request{NewID: "N"}, Applied, ""},
		"none may begin":                 {Cell{}, Request{}, Refused, problem.RateLimited},
		"a key after its life":           {merged, Request{Conditions: Conditions{Key: "K", Fingerprint: "G"}, TTL: KeyLife}, Applied, ""},
	} {
		r := test.request
		r.Mark, r.Limits = "N", roomy
		if r.Rule == nil {
			r.Rule = adding("2")
		}
		now := decidedAt.Add(r.TTL)
		got := r.Decide(test.cell, now)
		var code problem.Code
		if got.Effect.Refusal != nil {
			code = got.Effect.Refusal.Code
		}
		assert.That(t, got.Status == test.want && code == test.code, "%s: %s %s", name, got.Status, code)
		assert.That(t, got.Commits == (test.want == Applied), "%s: commits %v", name, got.Commits)
		if test.want != Applied {
			assert.Equal(t, got.Cell, test.cell, "%s: the cell", name)
		}
	}
}

func TestDecide_RefusedListNamesEveryFault(t *testing.T) {
	t.Parallel()
	rules := []Rule{adding("1"), SetQuantity(Item{ID: "7"}, 1, anyQuantity, ""), adding("2"), SetQuantity(Item{ID: "2", OnlyIDs: true}, 200, anyQuantity, "")}
	held := Cell{Cart: cartOf(Line{ID: "3", Quantity: 1})}
	for _, each := range []bool{false, true} {
		r := Request{Change: Change{Rule: List(each, rules), List: true}, Mark: "N", Limits: roomy, TTL: time.Hour}
		got := r.Decide(held, decidedAt)
		var codes []problem.Code
		for _, effect := range got.Effect.Ops {
			code := problem.Code("")
			if effect.Refusal != nil {
				code = effect.Refusal.Code
			}
			codes = append(codes, code)
		}
		assert.Equal(t, codes, []problem.Code{"", problem.ItemNotFound, "", problem.QuantityOutOfRange}, "each %v", each)
		assert.That(t, got.Commits == each && len(got.Cell.Lines) == map[bool]int{false: 1, true: 3}[each], "each %v: %+v", each, got.Cell.Lines)
		assert.That(t, !each || got.Cell.Version == 2, "a list makes version %d", got.Cell.Version)
	}
}

// A refused change leaves no trace, and the repeat of an applied one changes nothing.
func TestDecide_RepeatsAndRefusalsChangeNothing(t *testing.T) {
	t.Parallel()
	ids := []LineID{"1", "1.p1", "2"}
	rapid.Check(t, func(t *rapid.T) {
		cell, now := Cell{}, decidedAt
		keys := map[string]KeyUse{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400_000).Draw(t, "ms")) * time.Millisecond)
			id := rapid.SampledFrom(ids).Draw(t, "line")
			r := Request{NewID: "N", Mark: "M", TTL: time.Hour, Limits: roomy}
			r.Rule = rapid.SampledFrom([]Rule{
				adding(id), SetQuantity(Item{ID: id}, rapid.Int64Range(0, 120).Draw(t, "quantity"), anyQuantity, ""),
				Remove(Item{ID: id}), Clear(), SetCoupon(string(id)), SetMetadata(Metadata{"a": string(id)}),
			}).Draw(t, "rule")
			if name := rapid.SampledFrom([]string{"", "K1", "K2"}).Draw(t, "key"); name != "" {
				r.Key, r.Fingerprint = name, "F"
			} else {
				r.Stamp = rapid.SampledFrom([]string{"", "stampA", "stampB"}).Draw(t, "stamp")
			}
			cell.Key = keys[r.Key]
			before := cell
			got := r.Decide(cell, now)
			switch {
			case got.Status != Applied:
				if diff := cmp.Diff(before, got.Cell); diff != "" || got.Commits {
					t.Fatalf("%s changed the cell (-before +after)\n%s", got.Status, diff)
				}
			case got.Effect.Altered && (got.Cell.Version != before.Version+1 || !got.Commits):
				t.Fatalf("version %d after %d", got.Cell.Version, before.Version)
			}
			cell = got.Cell
			if got.Status != Applied || cell.ID == "" {
				continue
			}
			if r.Key != "" {
				keys[r.Key] = got.Use
			}
			cell.Key = keys[r.Key]
			again := r.Decide(cell, now.Add(time.Second))
			if r.Key+r.Stamp != "" && again.Status != Replayed {
				t.Fatalf("a repeat is %s", again.Status)
			}
		}
	})
}
