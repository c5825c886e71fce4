package cart

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
)

func TestParseStrategy(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"sum", "max", "guest", "customer"} {
		if got, err := ParseStrategy(s); err != nil || string(got) != s {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "Sum", "sum ", "min"} {
		if got, err := ParseStrategy(s); err == nil {
			t.Errorf("%q was taken for %q", s, got)
		}
	}
}

func TestMergeReport_SaysThatAnotherCartWaits(t *testing.T) {
	t.Parallel()
	var none *MergeReport
	merged, waits := &MergeReport{ID: "A", Lines: 1}, &MergeReport{ID: "B", Code: problem.CartFull}
	if none.With(nil) != nil || none.With(waits) != waits || merged.With(nil) != merged {
		t.Error("a report of nothing counted")
	}
	if both := merged.With(waits); both.ID != "A" || both.Lines != 1 || both.Code != problem.CartFull || merged.Code != "" {
		t.Errorf("got %+v, and the first has become %+v", both, merged)
	}
}

func TestMerge_StrategiesDecideWhatBothHold(t *testing.T) {
	t.Parallel()
	own := cartOf(Line{ID: "1", Quantity: 2, AddedPrice: 300}, Line{ID: "2", Quantity: 5})
	guest := cartOf(Line{ID: "2", Quantity: 3}, Line{ID: "1", Quantity: 4, AddedPrice: 500, Notice: "n"}, Line{ID: "3", Quantity: 1})
	bounds := map[LineID]Bounds{"1": anyQuantity, "2": anyQuantity, "3": anyQuantity}
	for by, want := range map[Strategy][]int64{Sum: {6, 8, 1}, Max: {4, 5, 1}, KeepGuest: {4, 3, 1}, KeepCustomer: {2, 5, 1}} {
		got, offers, report := own.Merge(guest, by, bounds, Offers{})
		quantities := []int64{got.Lines[0].Quantity, got.Lines[1].Quantity, got.Lines[2].Quantity}
		if !slices.Equal(quantities, want) || got.Version != 2 || got.Lines[0].AddedPrice != 300 || got.Lines[0].Notice != "n" {
			t.Errorf("%s: %+v", by, got)
		}
		if report == nil || report.Lines != 3 || len(report.Adjusted) != 0 {
			t.Errorf("%s: report %+v", by, report)
		}
		again, _, report := got.Merge(guest, by, bounds, offers)
		if diff := cmp.Diff(got, again); diff != "" || report != nil {
			t.Errorf("%s, again: %+v (-first +again)\n%s", by, report, diff)
		}
	}
}

// A failover may lose a claim: the guest's cart is back, and grows.
func TestMerge_SumAddsOnlyGrowth(t *testing.T) {
	t.Parallel()
	bounds := map[LineID]Bounds{"1": anyQuantity}
	got, offers, _ := cartOf().Merge(cartOf(Line{ID: "1", Quantity: 3}), Sum, bounds, Offers{})
	got, _, _ = got.SetQuantity("1", 1, anyQuantity, "")
	got, _, _ = got.Merge(cartOf(Line{ID: "1", Quantity: 5}), Sum, bounds, offers)
	if got.Lines[0].Quantity != 3 {
		t.Errorf("got %+v", got.Lines)
	}
}
