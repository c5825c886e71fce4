package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

func TestCartBenchmarks_RunEndToEnd(t *testing.T) {
	t.Parallel()
	binary, err := build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "results.json")
	chosen, o, err := parse([]string{
		"get", "-rounds", "1", "-turn", "100ms", "count", "-connections", "3", "add",
		"-binary", binary, "-against", binary, "-json", path,
	})
	if err != nil {
		t.Fatal(err)
	}
	o.postgres = ephemeral.Postgres(t)
	var table strings.Builder
	if err := runAll(t.Context(), chosen, o, &table); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got report
	if err := json.Unmarshal(written, &got); err != nil {
		t.Fatal(err)
	}
	if got.Machine.CPUs == 0 || got.Go == "" || got.Connections != 3 || got.Rounds != 1 || got.Turn != "100ms" ||
		len(got.Programs) != 2 || got.Programs[1].Path != binary || got.Programs[1].Go == "" {
		t.Errorf("the results do not describe the run: %+v", got)
	}
	for i, want := range []struct {
		name  string
		cases int // floors, and each case for both services
	}{{"get", 2 + 2*5}, {"count", 2 + 2*3}, {"add", 1 + 2*6}} {
		if i >= len(got.Benchmarks) || got.Benchmarks[i].Name != want.name || len(got.Benchmarks[i].Cases) != want.cases {
			t.Errorf("benchmark %d is not %s with %d cases:\n%s", i, want.name, want.cases, written)
			continue
		}
		for _, c := range got.Benchmarks[i].Cases {
			checkCase(t, want.name, c)
			if !strings.Contains(table.String(), c.Name) {
				t.Errorf("%s: the table has no row for %s", want.name, c.Name)
			}
		}
	}
}

func checkCase(t *testing.T, benchmark string, c caseResult) {
	t.Helper()
	ratios := 1
	switch {
	case strings.HasPrefix(c.Name, "floor-"):
		ratios = 0
	case strings.HasSuffix(c.Name, " [against]"):
		ratios = 2
	}
	if len(c.Rounds) != 1 || c.Rounds[0].Requests < 1 || c.Rate.Median <= 0 || c.P50.Median <= 0 || c.P99.Max < c.P50.Min || len(c.Ratios) != ratios {
		t.Errorf("%s, %s: %+v", benchmark, c.Name, c)
	}
}

func TestSummarize_ComparesWithinEachRound(t *testing.T) {
	t.Parallel()
	cases := []testCase{{name: "floor"}, {name: "ours", compared: []comparison{{of: "floor", maximum: 3, cost: wholeCost}}}}
	got := summarize(cases, [][]round{
		{{Server: 8, Store: 2}, {Server: 16, Store: 4}, {}},
		{{Server: 10, Store: 10}, {Server: 10, Store: 10}, {Server: 9, Store: 9}},
	})
	want := ratio{Of: "floor", figure: figure{Median: 1.5, Min: 1, Max: 2}, Maximum: 3}
	if r := got.Cases[1].Ratios; len(r) != 1 || r[0] != want {
		t.Errorf("ratios %+v, want %+v", r, want)
	}
	if median := got.Cases[1].Server.Median; median != 10 {
		t.Errorf("median of three is %v, want 10", median)
	}
}

func TestParse_RefusesUnknownBenchmarks(t *testing.T) {
	t.Parallel()
	_, _, err := parse([]string{"get", "gte"})
	if err == nil || !strings.Contains(err.Error(), "list, get, count, add") {
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
		c, err := same(target.URL, http.Header{})(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c.setAddresses(0)
		l, err := put(ctx, []*client{c}, time.Minute)
		cancel()
		target.Close()
		if l.failed != want.failed || (err != nil) != want.wrong || l.requests != want.good {
			t.Errorf("after a %d: %d good, %d failed, %v", status, l.requests, l.failed, err)
		}
	}
}
