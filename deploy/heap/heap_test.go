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
	if limit := os.Getenv("HEAP_TEST_LIMIT"); limit != "" {
		report(t, limit)
		return
	}
	for name, c := range map[string]struct {
		limit  string
		env    []string
		growth string
		want   string // the memory limit; "" for any
	}{
		"a limit":               {"67108864", nil, "200", "67108864"},
		"the cgroup's":          {"0", nil, "200", ""},
		"no cgroup's":           {"0", []string{"AUTOMEMLIMIT=off"}, "200", strconv.Itoa(math.MaxInt64)},
		"GOGC":                  {"67108864", []string{"GOGC=50"}, "50", "67108864"},
		"GOGC empty":            {"67108864", []string{"GOGC="}, "200", "67108864"},
		"GOMEMLIMIT":            {"67108864", []string{"GOMEMLIMIT=99MiB"}, "200", strconv.Itoa(99 << 20)},
		"GOMEMLIMIT, no limit":  {"0", []string{"GOMEMLIMIT=99MiB"}, "200", strconv.Itoa(99 << 20)},
		"GOMEMLIMIT empty":      {"67108864", []string{"GOMEMLIMIT="}, "200", "67108864"},
		"GOGC=off, no limit":    {"0", []string{"GOGC=off"}, "-1", ""},
		"GOGC=off and a limit":  {"67108864", []string{"GOGC=off"}, "-1", "67108864"},
		"GOGC and GOMEMLIMIT":   {"0", []string{"GOGC=200", "GOMEMLIMIT=1GiB"}, "200", strconv.Itoa(1 << 30)},
		"GOMEMLIMIT=off":        {"67108864", []string{"GOMEMLIMIT=off"}, "200", strconv.Itoa(math.MaxInt64)},
		"the ratio of a cgroup": {"0", []string{"AUTOMEMLIMIT=0.5"}, "200", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.v")
			again.Env = append([]string{"HEAP_TEST_LIMIT=" + c.limit}, c.env...)
			out, err := again.CombinedOutput()
			assert.Require(t, err == nil, "%v: %s", err, out)
			want := "growth " + c.growth + " limit " + c.want
			assert.That(t, strings.Contains(string(out), want), "got %s, want %q", out, want)
		})
	}
}

func report(t *testing.T, limit string) {
	t.Helper()
	n := assert.Must(strconv.ParseInt(limit, 10, 64))(t)
	inForce := assert.Must(heap.Configure(n))(t)
	assert.Equal(t, debug.SetMemoryLimit(-1), inForce, "Configure returned %d, and the limit", inForce)
	t.Log("growth", debug.SetGCPercent(100), "limit", inForce)
}

func TestParseSize_ReadsBytesWithBinarySuffixes(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{
		"": 0, "33554432": 32 << 20, "33554432B": 32 << 20, "32MiB": 32 << 20, "40960KiB": 40 << 20, "2GiB": 2 << 30,
		"1TiB": 1 << 40, "8388607TiB": 8388607 << 40,
	} {
		got, err := heap.ParseSize(s)
		assert.That(t, got == want && err == nil, "%q: got %d, %v; want %d", s, got, err, want)
	}
}

func TestParseSize_RefusesAnythingElse(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"0", "512", "31MiB", "32767KiB", "lots", "-1", "+67108864", "512mb", "512M", "512MB", "0.5GiB", "512 MiB", " 64MiB",
		"MiB", "64MiBB", "64BMiB", "8388608TiB", "9223372036854775808", "1e9", "64_000_000", "off",
	} {
		got, err := heap.ParseSize(s)
		assert.That(t, got == 0 && err != nil, "%q: got %d and %v, want an error", s, got, err)
	}
}
