package problem_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

var (
	textFew  = locale.Text{locale.En: "Only %d of %s.", locale.Ar: "%[2]s: %[1]d"}
	textGone = locale.Text{locale.En: "Gone: 100 %."}
)

func TestError_HasAMessageInEveryLanguage(t *testing.T) {
	t.Parallel()
	e := problem.New(problem.OutOfStock, "qty", textFew, 3, "P")
	if got := e.Message(locale.En); got != "Only 3 of P." {
		t.Errorf("in English %q", got)
	}
	if got := e.Message(locale.Ar); got != "P: 3" {
		t.Errorf("in Arabic %q", got)
	}
	if got := problem.New(problem.NotFound, "", textGone).Message(locale.Ar); got != "Gone: 100 %." {
		t.Errorf("without arguments, and in a language that it lacks: %q", got)
	}
}

func TestJoin_NamesEveryInvalidMember(t *testing.T) {
	t.Parallel()
	first, second := problem.New(problem.OutOfStock, "qty", textGone), problem.New(problem.FieldMissing, "fields.a", textGone)
	whole := problem.New(problem.CartFull, "", textGone)
	all := problem.Join(nil, first, nil, second, whole)
	want := map[string][]string{"qty": {"Gone: 100 %."}, "fields.a": {"Gone: 100 %."}}
	if diff := cmp.Diff(want, all.Members(locale.En)); diff != "" || all.Code != problem.OutOfStock {
		t.Errorf("%s (-want +got)\n%s", all.Code, diff)
	}
	if len(first.Faults) != 1 || len(second.Faults) != 1 {
		t.Error("Join changed its argument")
	}
	if problem.Join(nil, nil) != nil || whole.Members(locale.En) != nil {
		t.Error("Join without errors is not nil")
	}
}

func TestError_ShowsItsCauseOnlyInTheLog(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	plain := problem.New(problem.Unavailable, "", textGone)
	e := plain.Because(cause).WithData(7)
	if !errors.Is(e, cause) || plain.Cause != nil || plain.Data != nil || e.Data != 7 {
		t.Errorf("got %+v from %+v", e, plain)
	}
	if got, want := e.Error(), "connection refused"; got != want {
		t.Errorf("logged as %q, want %q", got, want)
	}
}
