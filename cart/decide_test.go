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
				Remove(Item{ID: id}), Clear(), SetCodes(string(id)), SetMetadata(Metadata{"a": string(id)}),
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

// However often each change is sent: a line holds the sum of the adds that were applied since it began, never less than 1,
// and each change that alters the cart makes the next version.
func TestDecide_AddsOfALineSum(t *testing.T) {
	t.Parallel()
	bounds := Bounds{Stock: 40, Min: 1, Max: 30, PerCart: 35}
	rapid.Check(t, func(t *rapid.T) {
		cell, now, versions := Cell{}, decidedAt, int64(0)
		sums, product := map[LineID]int64{}, int64(0) // all lines are of one product
		for i := range rapid.IntRange(1, 40).Draw(t, "changes") {
			id, n := rapid.SampledFrom([]LineID{"1", "1.p1"}).Draw(t, "line"), rapid.Int64Range(1, 12).Draw(t, "quantity")
			r := Request{Change: Change{Rule: Add(newLine(id, n, bounds))}, NewID: "N", Mark: "M", TTL: time.Hour, Limits: roomy}
			r.Key, r.Fingerprint, cell.Key = string(rune('a'+i)), "F", KeyUse{}
			sum := sums[id] + n
			if rapid.IntRange(0, 4).Draw(t, "removes") == 0 {
				r.Rule, n, sum = Remove(Item{ID: id, OnlyIDs: true}), -sums[id], 0
			}
			got := r.Decide(cell, now)
			fits := n <= 0 || sum <= bounds.Max && product+n <= bounds.PerCart
			if applied := got.Status == Applied; applied != fits {
				t.Fatalf("%d more of %s with %d, of %d in all: %s", n, id, sums[id], product, got.Status)
			}
			if fits {
				sums[id], product = sum, product+n
			}
			if got.Effect.Altered {
				versions++
			}
			cell = got.Cell
			cell.Key = got.Use
			if again := r.Decide(cell, now); fits && (again.Status != Replayed || again.Cell.Version != versions) {
				t.Fatalf("a repeat is %s, in version %d", again.Status, again.Cell.Version)
			}
			wantSums(t, &cell.Cart, sums, versions)
		}
	})
}

func wantSums(t *rapid.T, c *Cart, sums map[LineID]int64, version int64) {
	held := map[LineID]int64{"1": 0, "1.p1": 0}
	for _, l := range c.Lines {
		if l.Quantity < 1 {
			t.Fatalf("line %s holds %d", l.ID, l.Quantity)
		}
		held[l.ID] += l.Quantity
	}
	if held["1"] != sums["1"] || held["1.p1"] != sums["1.p1"] || c.Version != version {
		t.Fatalf("version %d holds %v, want version %d with %v", c.Version, held, version, sums)
	}
}

// A second click counts, and the client's own retry does not: it comes a second or more after the first try, and within
// the life of the stamp.
func TestDecide_TellsARetryByItsStampFromAClick(t *testing.T) {
	t.Parallel()
	r := Request{Change: Change{Rule: adding("1")}, NewID: "N", Mark: "M", TTL: time.Hour, Limits: roomy}
	r.Stamp = "stampA"
	first := r.Decide(Cell{}, decidedAt)
	for after, want := range map[time.Duration]Status{
		0: Applied, StampFrom - time.Millisecond: Applied, StampFrom: Replayed,
		StampLife: Replayed, StampLife + time.Millisecond: Applied,
	} {
		got := r.Decide(first.Cell, decidedAt.Add(after))
		assert.Equal(t, got.Status, want, "after %v", after)
		versions := map[Status]int64{Applied: 2, Replayed: 1}
		assert.That(t, got.Cell.Version == versions[want] && got.Cell.Count() == versions[want], "after %v: %+v", after, got.Cell.Cart)
		assert.Equal(t, got.Commits, want == Applied, "after %v: whether it commits", after)
	}
	// Of two clicks within a second the first counts, so a retry of either is known.
	second := r.Decide(first.Cell, decidedAt.Add(StampFrom-time.Millisecond))
	assert.Equal(t, r.Decide(second.Cell, decidedAt.Add(StampFrom)).Status, Replayed, "a retry after two clicks")
}

// A change without effect keeps the version; one with a key or a stamp is remembered all the same.
func TestDecide_AChangeWithoutEffectKeepsTheVersion(t *testing.T) {
	t.Parallel()
	held := Cell{Cart: cartOf(Line{ID: "1", Quantity: 2})}
	for name, test := range map[string]struct {
		on      Conditions
		commits bool
	}{
		"without a key": {Conditions{}, false}, "with a key": {Conditions{Key: "K", Fingerprint: "F"}, true},
		"with a stamp": {Conditions{Stamp: "stampA"}, true},
	} {
		for of, rule := range map[string]Rule{
			"the same quantity": SetQuantity(Item{ID: "1"}, 2, anyQuantity, ""), "no line": Remove(Item{ID: "7"}), "no coupon": SetCodes(),
		} {
			r := Request{Conditions: test.on, Change: Change{Rule: rule}, Mark: "N", TTL: time.Hour, Limits: roomy}
			got := r.Decide(held, decidedAt)
			assert.That(t, got.Status == Applied && got.Commits == test.commits, "%s, %s: %s, commits %v", of, name, got.Status, got.Commits)
			assert.Equal(t, got.Cell.Cart, held.Cart, "%s, %s: the cart", of, name)
			r.NewID = "N"
			got = r.Decide(Cell{}, decidedAt)
			assert.That(t, of == "the same quantity" || got.Cell.ID == "" && !got.Commits, "%s, %s: an unused cart is %+v", of, name, got.Cell)
		}
	}
}
