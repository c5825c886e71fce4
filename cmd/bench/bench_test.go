package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/cmd/bench/results"
	"commerce/deploy/ephemeral"
)

// TestMain lets the test binary run as a floor, like bench.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && floors()[os.Args[1]] != nil {
		main()
		return
	}
	os.Exit(m.Run())
}

// Each benchmark belongs to one of the subtests, two of which run at the same time on two
// CPUs: most of their time they wait for servers to start.
func TestBenchmarks_RunEndToEnd(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	binary, err := build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string][]size{ // floors run twice
		"carts under load": {
			{"get", 4 + 5, 0, 0},
			{"count", 2 + 3, 0, 0},
			{"add", 2 + 6, 0, 0},
			{"latency", 1 + 1, 6, 3},
			{"readers", 3 * 2, 0, 1}, // 3 and 12 readers
			{"soak", 0, 4, 1},
		},
		"carts": {
			{"allocations", 0, 16, 0}, // at least four owners of four requests
			{"memory", 0, 4, 1},
			{"writes", 0, 3, 0},
			{"sizes", 0, 4 + 4, 0},
			{"start", 0, 2, 0},
			{"outage", 0, 2*2 + 1, 0},
			{"overload", 0, 3 * 3, 0},
		},
		"subscriptions": {
			{"list", 2 + 1 + 2 + 7 + 1, 0, 1},     // the first page, page 10 by link and by number, filters, changes
			{"export", 0, 2*5 + 3*2 + 2*(2+5), 1}, // all rows; pages of two sizes and far away; formats, compared to all
		},
	}
	tested := []string{"peers"} // by TestPeers_CompareTheServiceToTheSmallCart
	for name, want := range runs {
		tested = append(tested, namesOf(want)...)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkAll(t, measured(t, append(namesOf(want), "-binary", binary)...), want)
		})
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(names())), slices.Sorted(slices.Values(tested))); diff != "" {
		t.Errorf("tested benchmarks (-all +tested):\n%s", diff)
	}
	t.Run("two builds", func(t *testing.T) {
		t.Parallel()
		got := measured(t, "get", "-binary", binary, "-against", binary, "memory", "export")
		checkAll(t, got, []size{{"get", 4 + 2*5, 0, 0}, {"memory", 0, 2 * 4, 1}, {"export", 0, 30 + 2*5 + 5*(2+2), 1}})
		if len(got.Programs) != 2 || got.Programs[1].Path != binary || got.Programs[1].Go == "" {
			t.Errorf("the results do not describe the second program: %+v", got.Programs)
		}
	})
}

func namesOf(all []size) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.name)
	}
	return names
}

// measured runs benchmarks briefly, and returns their results as read from the file.
func measured(t *testing.T, arguments ...string) results.Report {
	t.Helper()
	out := t.TempDir()
	chosen, o, err := parse(append(arguments,
		"-rounds", "1", "-turn", "50ms", "-connections", "3", "-rows", "3000", "-soak", "300ms", "-out", out))
	if err != nil {
		t.Fatal(err)
	}
	o.postgres = ephemeral.Postgres(t)
	var tables strings.Builder
	if err := runAll(t.Context(), chosen, o, &tables); err != nil {
		t.Fatal(err)
	}
	got, err := results.Read(filepath.Join(out, resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	if got.Machine.CPUs == 0 || got.Go == "" || got.Connections != 3 || got.Rounds != 1 || got.Turn != "50ms" {
		t.Errorf("the results do not describe the run: %+v", got)
	}
	for _, b := range got.Benchmarks {
		for _, c := range b.Cases {
			if !strings.Contains(tables.String(), c.Name) {
				t.Errorf("%s: the tables have no row for %s", b.Name, c.Name)
			}
		}
	}
	again, err := os.ReadFile(filepath.Join(out, tablesFile))
	if err != nil || !strings.Contains(string(again), "## Targets") {
		t.Errorf("%v; the tables beside the results are:\n%s", err, again)
	}
	return got
}

// size is how much a benchmark reports.
type size struct {
	name                  string
	cases, values, curves int
}

func checkAll(t *testing.T, got results.Report, want []size) {
	t.Helper()
	var sizes []size
	for _, b := range got.Benchmarks {
		values := len(b.Values)
		if b.Name == "allocations" { // depends on the modules that take part
			values = min(values, 16)
		}
		sizes = append(sizes, size{b.Name, len(b.Cases), values, len(b.Curves)})
		for _, c := range b.Cases {
			checkCase(t, b.Name, c)
		}
	}
	if diff := cmp.Diff(want, sizes, cmp.AllowUnexported(size{})); diff != "" {
		t.Errorf("cases, values and curves (-want +got):\n%s", diff)
	}
}

func checkCase(t *testing.T, benchmark string, c results.Case) {
	t.Helper()
	if len(c.Rounds) != 1 || c.Rounds[0].Requests < 1 || c.Rate.Median <= 0 || c.P50.Median <= 0 || c.P99.Max < c.P50.Min {
		t.Errorf("%s, %s: %+v", benchmark, c.Name, c)
	}
	if c.Server.Median <= 0 || c.Allocations.Median <= 0 || c.Allocated.Median <= 0 || c.Resident.Median <= 0 {
		t.Errorf("%s, %s does not know what the server used: %+v", benchmark, c.Name, c)
	}
	if strings.HasSuffix(c.Name, " [against]") && len(c.Ratios) == 0 {
		t.Errorf("%s, %s is not compared", benchmark, c.Name)
	}
}

func TestSummarize_ComparesWithinEachRound(t *testing.T) {
	t.Parallel()
	cases := []testCase{
		{name: "floor"},
		{name: "ours", compared: []results.Comparison{{Cost: results.CPU, Of: "floor", AtMost: new(1.25)}}},
	}
	got := summarize(cases, [][]results.Round{
		{{Server: 8, Store: 2}, {Server: 16, Store: 4}, {}},
		{{Server: 10, Store: 10}, {Server: 10, Store: 10}, {Server: 9, Store: 9}},
	})
	want := results.Ratio{Cost: results.CPU, Of: "floor", Figure: results.Figure{Median: 1.5, Min: 1, Max: 2}, AtMost: new(1.25)}
	if diff := cmp.Diff([]results.Ratio{want}, got[1].Ratios); diff != "" {
		t.Errorf("ratios (-want +got):\n%s", diff)
	}
	if !got[1].Ratios[0].Missed() {
		t.Error("a ratio above its target is not missed")
	}
	if median := got[1].Server.Median; median != 10 {
		t.Errorf("median of three is %v, want 10", median)
	}
}

func TestParse_RefusesUnknownBenchmarks(t *testing.T) {
	t.Parallel()
	_, _, err := parse([]string{"get", "gte"})
	if err == nil || !strings.Contains(err.Error(), "get, count, add, allocations") {
		t.Errorf("got %v, want an error that lists the benchmarks", err)
	}
}

func TestPut_CountsUnavailableAndStopsAtAnyOtherStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct {
		good, failed int
		wrong        bool
	}{
		http.StatusServiceUnavailable:  {good: 2, failed: 1},
		http.StatusGatewayTimeout:      {good: 2, failed: 1},
		http.StatusInternalServerError: {good: 1, wrong: true},
	} {
		var asked atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			switch asked.Add(1) {
			case 2:
				w.WriteHeader(status)
			case 3:
				cancel()
			}
		}))
		c, transport := loneClient(t, target.URL)
		l, err := put(ctx, transport, []*client{c}, time.Minute)
		cancel()
		target.Close()
		if l.failed != want.failed || (err != nil) != want.wrong || l.requests != want.good {
			t.Errorf("after a %d: %d good, %d failed, %v", status, l.requests, l.failed, err)
		}
	}
}

// loneClient returns a client that repeats one GET, and the transport for it.
func loneClient(t *testing.T, url string) (*client, *http.Transport) {
	t.Helper()
	c, err := same(url, http.Header{})(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.setAddresses(0)
	transport := newTransport(1)
	t.Cleanup(transport.CloseIdleConnections)
	return c, transport
}
