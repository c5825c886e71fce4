package heap_test

import (
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/heap"
)

// The collector's settings are a process' own, so each case runs this test in another one.
func TestConfigure_SetsGrowthAndLimitUnlessTheEnvironmentDoes(t *testing.T) {
	t.Parallel()
	if os.Getenv("HEAP_TEST") != "" {
		report(t)
		return
	}
	none := strconv.Itoa(math.MaxInt64)
	for name, c := range map[string]struct {
		env    []string
		growth string
		want   string // the memory limit; "" for any
	}{
		"the cgroup's":            {nil, "200", ""},
		"no cgroup's":             {[]string{"AUTOMEMLIMIT=off"}, "200", none},
		"the ratio of a cgroup":   {[]string{"AUTOMEMLIMIT=0.5"}, "200", ""},
		"GOGC":                    {[]string{"AUTOMEMLIMIT=off", "GOGC=50"}, "50", none},
		"GOGC empty":              {[]string{"AUTOMEMLIMIT=off", "GOGC="}, "200", none},
		"GOGC=off":                {[]string{"GOGC=off"}, "-1", ""},
		"GOMEMLIMIT":              {[]string{"GOMEMLIMIT=99MiB"}, "200", strconv.Itoa(99 << 20)},
		"GOMEMLIMIT empty":        {[]string{"AUTOMEMLIMIT=off", "GOMEMLIMIT="}, "200", none},
		"GOMEMLIMIT=off":          {[]string{"GOMEMLIMIT=off"}, "200", none},
		"GOGC=200 and GOMEMLIMIT": {[]string{"GOGC=200", "GOMEMLIMIT=1GiB"}, "200", strconv.Itoa(1 << 30)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.v")
			again.Env = append([]string{"HEAP_TEST=1"}, c.env...)
			out, err := again.CombinedOutput()
			assert.Require(t, err == nil, "%v: %s", err, out)
			want := "growth " + c.growth + " limit " + c.want
			assert.That(t, strings.Contains(string(out), want), "got %s, want %q", out, want)
		})
	}
}

func report(t *testing.T) {
	t.Helper()
	inForce := assert.Must(heap.Configure())(t)
	assert.Equal(t, debug.SetMemoryLimit(-1), inForce, "Configure returned %d, and the limit", inForce)
	t.Log("growth", debug.SetGCPercent(100), "limit", inForce)
}
