// Package heap configures Go's garbage collector for a server with a small live heap.
package heap

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// growth is how much the heap grows between two collections, as a percentage of the live
// heap; Go's default is 100. The service's live heap is about 10 MB, so the default
// collects many times a second under load. With 200, half as often, the service stays below
// 100 MB of resident memory; with 400 it took up to 119.
const growth = 200

// Configure sets how the garbage collector works: how much the heap may grow between two
// collections, and a soft limit of all memory that Go uses. limit is in bytes. 0 means 90 %
// of the cgroup's limit, or no limit if there is no cgroup or it has none. GOGC and
// GOMEMLIMIT in the environment take precedence.
//
// It returns the limit in force; math.MaxInt64 means none. An error means that the limit
// of the cgroup cannot be read. There is no limit then, but the growth is set.
func Configure(limit int64) (int64, error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return debug.SetMemoryLimit(-1), nil
	}
	if limit > 0 {
		debug.SetMemoryLimit(limit)
		return limit, nil
	}
	limit, err := memlimit.Set()
	if errors.Is(err, memlimit.ErrNoCgroup) || errors.Is(err, memlimit.ErrCgroupsNotSupported) {
		return limit, nil
	}
	if err != nil {
		return limit, fmt.Errorf("read the cgroup's memory limit: %w", err)
	}
	return limit, nil
}

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
