package cart

import (
	"testing"
	"time"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

func TestParseStrategy(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"sum", "max", "guest", "customer"} {
		got, err := ParseStrategy(s)
		assert.That(t, err == nil && string(got) == s, "%q: %q, %v", s, got, err)
	}
	for _, s := range []string{"", "Sum", "sum ", "min"} {
		got, err := ParseStrategy(s)
		assert.That(t, err != nil, "%q was taken for %q", s, got)
	}
}

func TestMergeReport_SaysThatAnotherCartWaits(t *testing.T) {
	t.Parallel()
	var none *MergeReport
	merged, waits := &MergeReport{ID: "A", Lines: 1}, &MergeReport{ID: "B", Code: problem.CartFull}
	assert.That(t, none.With(nil) == nil && none.With(waits) == waits && merged.With(nil) == merged,
		"a report of nothing counted")
	if both := merged.With(waits); both.ID != "A" || both.Lines != 1 || both.Code != problem.CartFull || merged.Code != "" {
		t.Errorf("got %+v, and the first has become %+v", both, merged)
	}
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestStampUse_TellsARetryFromASecondClick(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]bool{
		999 * time.Millisecond: false, time.Second: true, 5 * time.Minute: true, 5*time.Minute + time.Millisecond: false,
	} {
		assert.Equal(t, (StampUse{At: noon}).IsRetry(noon.Add(age)), want, "after %v", age)
	}
}
