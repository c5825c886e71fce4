package cart

import (
	"testing"

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
