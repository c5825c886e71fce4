package cart

import (
	"testing"
	"time"

	"commerce/deploy/assert"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestStampUse_TellsARetryFromASecondClick(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]bool{
		999 * time.Millisecond: false, time.Second: true, 5 * time.Minute: true, 5*time.Minute + time.Millisecond: false,
	} {
		assert.Equal(t, (StampUse{At: noon}).IsRetry(noon.Add(age)), want, "after %v", age)
	}
}
