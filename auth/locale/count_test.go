package locale_test

import (
	"testing"

	"golang.org/x/text/feature/plural"

	"commerce/auth/locale"
)

func TestCount_HasTheFormOfItsNumber(t *testing.T) {
	t.Parallel()
	days := locale.Noun{locale.Ar: {
		plural.Zero: "0 يوم", plural.One: "يوم واحد", plural.Two: "يومين", plural.Few: "{n} أيام", plural.Many: "{n} يومًا", plural.Other: "{n} يوم",
	}}
	left := locale.Text{locale.En: "Days left: %s.", locale.Ar: "لم يتبقَّ سوى %s."}
	for n, want := range map[int64]string{
		0: "0 يوم", 1: "يوم واحد", 2: "يومين", 3: "3 أيام", 10: "10 أيام", 11: "11 يومًا", 99: "99 يومًا",
		100: "100 يوم", 101: "101 يوم", 102: "102 يوم", 103: "103 أيام", 111: "111 يومًا", 1000: "1000 يوم",
		10_000_000: "10000000 يوم", 9_007_199_254_740_991: "9007199254740991 يومًا",
	} {
		if got := left.With(days.Of(n)).In(locale.Ar); got != "لم يتبقَّ سوى "+want+"." {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
	if got := left.With(days.Of(11)).In(locale.En); got != "Days left: 11." {
		t.Errorf("a language without forms: got %q", got)
	}
	few := locale.Noun{locale.Ar: {plural.Other: "{n} يوم"}}
	if got := few.Of(3).In(locale.Ar); got != "3 يوم" {
		t.Errorf("without a form for its category: got %q", got)
	}
}
