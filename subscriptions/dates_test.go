package subscriptions

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDates_AreWrittenAsTheirLayouts(t *testing.T) {
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
