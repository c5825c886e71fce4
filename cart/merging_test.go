package cart

import (
	"testing"
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

func TestMergeReport_AddsUp(t *testing.T) {
	t.Parallel()
	var none *MergeReport
	one := &MergeReport{Lines: 1, Adjusted: []Adjustment{{Line: "1"}}}
	two := &MergeReport{Lines: 2, Adjusted: []Adjustment{{Line: "2"}}}
	if none.Plus(nil) != nil || none.Plus(one) != one || one.Plus(nil) != one {
		t.Error("a report of nothing counted")
	}
	sum := one.Plus(two)
	if sum.Lines != 3 || len(sum.Adjusted) != 2 || sum.Adjusted[0].Line != "1" || one.Lines != 1 {
		t.Errorf("sum %+v, first %+v", sum, one)
	}
}
