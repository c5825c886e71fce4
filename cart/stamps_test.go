package cart

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/deploy/assert"
)

// The newest stamps count, whatever the parts are filled with; a stamp within its life keeps its first time.
func TestStamps_KeepTheNewest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s Stamps
		type entry struct {
			stamp string
			use   StampUse
		}
		var entries []entry // the newest, the oldest first
		newest := func(stamp string) *StampUse {
			for i := len(entries) - 1; i >= 0; i-- {
				if entries[i].stamp == stamp {
					return &entries[i].use
				}
			}
			return nil
		}
		now := time.UnixMilli(1_700_000_000_000)
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			now = now.Add(time.Duration(rapid.IntRange(-20, 30_000).Draw(t, "ms")) * time.Millisecond)
			stamp := fmt.Sprintf("stamp%c", 'A'+rapid.IntRange(0, 25).Draw(t, "stamp"))
			line := LineID(rapid.SampledFrom([]string{"", "1", "2.p1"}).Draw(t, "line"))
			s = s.With(stamp, line, now)
			for _, part := range s.Parts {
				if len(part) > stampFull || len(part)%stampEntry != 0 {
					t.Fatalf("a part has %d bytes", len(part))
				}
			}
			if earlier := newest(stamp); earlier != nil && now.Sub(earlier.At) <= StampLife {
				continue
			}
			at := now
			if n := len(entries); n > 0 && entries[n-1].use.At.After(now) { // times never go back
				at = entries[n-1].use.At
			}
			entries = append(entries, entry{stamp, StampUse{At: at, Line: line}})
			entries = entries[max(0, len(entries)-StampsKept):]
		}
		got := s.All()
		for stamp, use := range got {
			if want := newest(stamp); want == nil || want.Line != use.Line || !want.At.Equal(use.At) {
				t.Fatalf("%s: %+v, want %+v", stamp, use, want)
			}
		}
		for _, e := range entries {
			if _, counts := got[e.stamp]; !counts {
				t.Fatalf("%s does not count", e.stamp)
			}
		}
		for stamp := range s.Lines {
			if _, counts := got[stamp]; !counts {
				t.Fatalf("the line of %s outlives it", stamp)
			}
		}
	})
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
