package cart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
)

// Each attempt has all that comes after what it is about, too.
func TestJudge_GoesByItsOrder(t *testing.T) {
	t.Parallel()
	cart := cartOf(Line{ID: "1", Quantity: 1})
	known := Memory{Keys: map[string]KeyUse{"k": {noon, "f", ""}}, Stamps: map[string]StampUse{"s": {At: noon}}}
	merges := map[string]Reservation{"m1": {CartID: "G"}}
	now := noon.Add(time.Minute)
	for name, test := range map[string]struct {
		record  Record
		attempt Attempt
		want    Verdict
		code    problem.Code
	}{
		"after its deadline":      {Record{Cart: cart, Memory: known, Merges: merges}, Attempt{Key: "k", Fingerprint: "f", Deadline: noon}, Late, ""},
		"at its deadline":         {Record{Cart: cart, Memory: known}, Attempt{Deadline: now}, Applied, ""},
		"a merge under way":       {Record{Cart: cart, Memory: known, Merges: merges}, Attempt{Key: "k", Fingerprint: "f"}, Resume, ""},
		"a merge passed by":       {Record{Cart: cart, Memory: known, Merges: merges}, Attempt{PassBy: []string{"m1"}}, Applied, ""},
		"a key again":             {Record{Cart: cart, Memory: known}, Attempt{Key: "k", Fingerprint: "f", IfMatch: []string{"C.9.M"}}, Replayed, ""},
		"a key of something else": {Record{Cart: cart, Memory: known}, Attempt{Key: "k", Fingerprint: "g", IfMatch: []string{"C.9.M"}}, Refused, problem.IdempotencyConflict},
		"a stamp again":           {Record{Cart: cart, Memory: known}, Attempt{Stamp: "s", IfMatch: []string{"C.9.M"}}, Replayed, ""},
		"another version":         {Record{Cart: cart, Memory: known}, Attempt{IfMatch: []string{"C.9.M", "C.11.M"}}, Refused, problem.VersionMismatch},
		"one of two versions":     {Record{Cart: cart, Memory: known}, Attempt{IfMatch: []string{"C.9.M", "C.1.M"}}, Applied, ""},
		"any version":             {Record{Cart: cart, Memory: known}, Attempt{IfMatch: []string{"*"}}, Applied, ""},
		"no cart yet":             {Record{}, Attempt{IfMatch: []string{"0.0.0"}}, Applied, ""},
	} {
		got, _, refusal := test.record.Judge(test.attempt, now)
		if got != test.want || (refusal == nil) != (test.code == "") || refusal != nil && refusal.Code != test.code {
			t.Errorf("%s: %s, %v", name, got, refusal)
		}
	}
}

func nothing(c Cart, _ Room) (Cart, LineID, *Refusal) { return c, "", nil }

func addOne(c Cart, _ Room) (Cart, LineID, *Refusal) {
	changed, refusal := c.Add(newLine("1", 1, anyQuantity), roomy)
	return changed, "", refusal
}

func TestChange_RemembersWhatItApplied(t *testing.T) {
	t.Parallel()
	first, verdict, _, _ := Record{}.Change(Attempt{Key: "k", Fingerprint: "f"}, "NEW", noon, addOne)
	if verdict != Applied || first.Cart.ID != "NEW" || first.Cart.Version != 1 || len(first.Memory.Keys) != 1 {
		t.Errorf("%s: %+v", verdict, first)
	}
	again, verdict, _, _ := first.Change(Attempt{Key: "k", Fingerprint: "f"}, "OTHER", noon, addOne)
	if diff := cmp.Diff(first, again); diff != "" || verdict != Replayed {
		t.Errorf("again: %s (-first +again)\n%s", verdict, diff)
	}
	idle, _, _, _ := first.Change(Attempt{Stamp: "s"}, "OTHER", noon, nothing)
	if len(idle.Memory.Stamps) != 1 || idle.Cart.Version != 1 {
		t.Errorf("a change that altered nothing: %+v", idle)
	}
}

func TestChange_LeavesNoTraceOtherwise(t *testing.T) {
	t.Parallel()
	refuse := func(Cart, Room) (Cart, LineID, *Refusal) {
		return Cart{ID: "X"}, "", &Refusal{Code: problem.OutOfStock}
	}
	if got, verdict, _, refusal := (Record{}).Change(Attempt{Key: "k"}, "NEW", noon, refuse); verdict != Refused || refusal == nil || !cmp.Equal(got, Record{}) {
		t.Errorf("refused: %s, %+v", verdict, got)
	}
	if got, verdict, _, _ := (Record{}).Change(Attempt{Key: "k"}, "NEW", noon, nothing); verdict != Applied || !cmp.Equal(got, Record{}) {
		t.Errorf("nothing in a cart never used: %s, %+v", verdict, got)
	}
}

func TestRecord_LivesByWhatItHolds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		record Record
		want   time.Duration
	}{
		"a line":      {Record{Cart: cartOf(Line{ID: "1"})}, time.Hour},
		"a coupon":    {Record{Cart: cartOf().SetCoupon("TEN")}, time.Hour},
		"a merge":     {Record{Merges: map[string]Reservation{"m": {}}}, time.Hour},
		"an id":       {Record{Cart: cartOf()}, EmptiedLife},
		"stamps only": {Record{Memory: Memory{Stamps: map[string]StampUse{"s": {At: noon}}}}, StampLife},
	} {
		if got := test.record.Life(time.Hour); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
