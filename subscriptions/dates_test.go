package subscriptions

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDates_FollowTheirLayouts(t *testing.T) {
	t.Parallel()
	layouts := map[dateForm]string{
		seconds: "2006-01-02 15:04:05", days: "2006-01-02", instants: "2006-01-02T15:04:05.000000Z",
	}
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	riyadh := time.FixedZone("", 3*60*60)
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(first.Unix(), last.Unix()).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		for form, layout := range layouts {
			if got, want := string(form.append(nil, at.In(riyadh))), at.UTC().Format(layout); got != want {
				t.Fatalf("%s: got %s, want %s", layout, got, want)
			}
		}
	})
}

func TestDates_OutOfRangeBecomeTheNearestInRange(t *testing.T) {
	t.Parallel()
	for at, want := range map[time.Time]string{
		time.Date(10010, 3, 4, 5, 6, 7, 0, time.UTC):                   "9999-12-31T23:59:59.999999Z",
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -1)): "9999-12-31T23:59:59.999999Z",
		time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC):                     "0001-01-01T00:00:00.000001Z",
		time.Date(-43, 3, 15, 0, 0, 0, 0, time.UTC):                    "0001-01-01T00:00:00.000001Z",
	} {
		if got := string(instants.append(nil, at)); got != want {
			t.Errorf("%v: %s, want %s", at, got, want)
		}
	}
}
