package problem_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/deploy/assert"
)

var (
	textFew  = locale.Text{locale.En: "Only %d of %s.", locale.Ar: "%[2]s: %[1]d"}
	textGone = locale.Text{locale.En: "Gone: 100 %."}
)

func TestError_HasAMessageInEveryLanguage(t *testing.T) {
	t.Parallel()
	e := problem.New(problem.OutOfStock, "qty", textFew, 3, "P")
	assert.Equal(t, e.Message(locale.En), "Only 3 of P.", "in English")
	assert.Equal(t, e.Message(locale.Ar), "P: 3", "in Arabic")
	assert.Equal(t, problem.New(problem.NotFound, "", textGone).Message(locale.Ar), "Gone: 100 %.",
		"without arguments, and in a language that it lacks")
}

func TestJoin_NamesEveryInvalidMember(t *testing.T) {
	t.Parallel()
	first, second := problem.New(problem.OutOfStock, "qty", textGone), problem.New(problem.FieldMissing, "fields.a", textGone)
	whole := problem.New(problem.CartFull, "", textGone)
	all := problem.Join(nil, first, nil, second, whole)
	want := map[string][]string{"qty": {"Gone: 100 %."}, "fields.a": {"Gone: 100 %."}}
	diff := cmp.Diff(want, all.Members(locale.En))
	assert.That(t, diff == "" && all.Code == problem.OutOfStock, "%s (-want +got)\n%s", all.Code, diff)
	assert.That(t, len(first.Faults) == 1 && len(second.Faults) == 1, "Join changed its argument")
	assert.That(t, problem.Join(nil, nil) == nil && whole.Members(locale.En) == nil, "Join without errors is not nil")
}

func TestJoin_StopsAtMaxFaults(t *testing.T) {
	t.Parallel()
	var none, all *problem.Error
	for i := range problem.MaxFaults {
		assert.That(t, !none.Full() && !all.Full(), "full with %d faults", i)
		all = problem.Join(all, problem.New(problem.FieldInvalid, "qty", textGone))
	}
	more := problem.Join(all, problem.New(problem.OutOfStock, "a", textGone))
	assert.That(t, all.Full() && len(more.Faults) == problem.MaxFaults, "%d faults", len(more.Faults))
	assert.That(t, len(all.First(2).Faults) == 2 && len(all.First(99).Faults) == problem.MaxFaults && all.Full(), "First changed the error")
}

func TestExcerpt_KeepsWholeCharacters(t *testing.T) {
	t.Parallel()
	for _, letter := range []string{"a", "ش", "😀"} {
		text := strings.Repeat(letter, 48)
		assert.Equal(t, []string{problem.Excerpt(text), problem.Excerpt(text + letter)}, []string{text, text + "…"}, "excerpts")
	}
}

func TestError_ShowsItsCauseOnlyInTheLog(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	plain := problem.New(problem.Unavailable, "", textGone)
	e := plain.Because(cause).WithData(7)
	assert.That(t, errors.Is(e, cause) && plain.Cause == nil && plain.Data == nil && e.Data == 7, "got %+v from %+v", e, plain)
	assert.Equal(t, e.Error(), "connection refused", "logged as")
}
