package heap

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MinLimit is the lowest limit that ParseSize accepts: 32 MiB. With less, the process would
// spend its time collecting garbage. It also catches a forgotten suffix.
const MinLimit = 32 << 20

// ParseSize reads a memory limit in the format of GOMEMLIMIT: a number of bytes, with an optional
// suffix B, KiB, MiB, GiB or TiB. The limit of "" is 0.
func ParseSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	digits, unit := s, int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if number, found := strings.CutSuffix(s, suffix); found {
			digits, unit = number, 1<<(10*(i+1))
		}
	}
	if unit == 1 {
		digits = strings.TrimSuffix(s, "B")
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a number of bytes such as 536870912 or 512MiB", s)
	}
	if size := int64(n) * unit; size >= MinLimit {
		return size, nil
	}
	return 0, fmt.Errorf("must be at least %dMiB", MinLimit>>20)
}
