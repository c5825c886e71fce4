package rules

import (
	"testing"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Each attempt has all that comes after what it is about, too.
func TestJudge_GoesByItsOrder(t *testing.T) {
	t.Parallel()
	one := cartOf(cart.Line{ID: "1", Quantity: 1})
	known := Memory{Keys: map[string]cart.KeyUse{"k": {At: noon, Fingerprint: "f"}}, Stamps: map[string]cart.StampUse{"s": {At: noon}}}
	merges := map[string]cart.Reservation{"m1": {CartID: "G"}}
	now := noon.Add(time.Minute)
	for name, test := range map[string]struct {
		record  Record
		attempt Attempt
		want    Status
		code    problem.Code
	}{
		"after its deadline":      {Record{Cart: one, Memory: known, Merges: merges}, Attempt{Key: "k", Fingerprint: "f", Deadline: noon}, Late, ""},
		"at its deadline":         {Record{Cart: one, Memory: known}, Attempt{Deadline: now}, Applied, ""},
		"a merge under way":       {Record{Cart: one, Memory: known, Merges: merges}, Attempt{Key: "k", Fingerprint: "f"}, MergeFirst, ""},
		"a merge passed by":       {Record{Cart: one, Memory: known, Merges: merges}, Attempt{Ignore: []string{"m1"}}, Applied, ""},
		"a key again":             {Record{Cart: one, Memory: known}, Attempt{Key: "k", Fingerprint: "f", IfMatch: []string{"C.9.M"}}, Replayed, ""},
		"a key of something else": {Record{Cart: one, Memory: known}, Attempt{Key: "k", Fingerprint: "g", IfMatch: []string{"C.9.M"}}, Refused, problem.IdempotencyConflict},
		"a stamp again":           {Record{Cart: one, Memory: known}, Attempt{Stamp: "s", IfMatch: []string{"C.9.M"}}, Replayed, ""},
		"another version":         {Record{Cart: one, Memory: known}, Attempt{IfMatch: []string{"C.9.M", "C.11.M"}}, Refused, problem.VersionMismatch},
		"one of two versions":     {Record{Cart: one, Memory: known}, Attempt{IfMatch: []string{"C.9.M", "C.1.M"}}, Applied, ""},
		"any version":             {Record{Cart: one, Memory: known}, Attempt{IfMatch: []string{"*"}}, Applied, ""},
		"no cart yet":             {Record{}, Attempt{IfMatch: []string{"0.0.0"}}, Applied, ""},
	} {
		got, _, refusal := test.record.Check(test.attempt, now)
		if got != test.want || (refusal == nil) != (test.code == "") || refusal != nil && refusal.Code != test.code {
			t.Errorf("%s: %s, %v", name, got, refusal)
		}
	}
}
