package backstage

import (
	"testing"
	"time"

	"commerce/deploy/assert"
)

func TestOutdated_IsWhatIsTooOldOrOneTooMany(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		copies, old int
		want        int
	}{
		"none":            {0, 0, 0},
		"room":            {maxCopies - 1, 0, 0},
		"no room":         {maxCopies, 0, 1},
		"old ones":        {maxCopies, 3, 3},
		"only old copies": {2, 2, 2},
	} {
		copies := make([]productCopy, tt.copies)
		for i := range copies {
			copies[i].made = now.Add(-copyAge)
			if i < tt.old {
				copies[i].made = copies[i].made.Add(-1)
			}
		}
		assert.Equal(t, outdated(copies, now), tt.want, "%s: outdated", name)
	}
}
