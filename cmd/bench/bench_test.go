package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/cmd/bench/results"
	"commerce/deploy/assert"
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

type size struct {
	name                  string
	cases, ratios, values int
}

// Each benchmark belongs to one of the subtests, two of which run at the same time on two
// CPUs: most of their time they wait for servers to start.
func TestBenchmarks_RunEndToEnd(t *testing.T) {
	t.Parallel()
	binary := assert.Must(build(t.Context(), t.TempDir()))(t)
	tested := []string{onDemand} // by TestPeers_CompareTheServiceToTheSmallCart
	for name, want := range map[string][]size{
		"carts": {
			{"get", 5 + 5, 6, 0},
			{"count", 3 + 3, 1, 0},
			{"add", 4 + 7, 9, 0},
			{"latency", (5 + 1) * 2, 5 + 1, 0},
			{"outage", 2 * 2, 2 * 2, 0},
		},
		"other": {
			{"overload", 3 * 4, 3, 0},
			{"memory", 0, 0, 6 + 4},
			{"list", 1 + 1 + 2 + 6 + 1, 11, 0}, // the first page, page 10 by link and by number, filters, changes
			{"export", 0, 0, 4*3 + 3},
		},
	} {
		for _, s := range want {
			tested = append(tested, s.name)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, measured(t, "-binary", binary), want)
		})
	}
	var all []string
	for _, b := range benchmarks() {
		all = append(all, b.name)
	}
	assert.Equal(t, slices.Sorted(slices.Values(tested)), slices.Sorted(slices.Values(all)), "tested benchmarks (-all +tested)")
	t.Run("two builds", func(t *testing.T) {
		t.Parallel()
		check(t, measured(t, "-binary", binary, "-against", binary), []size{
			{"get", 5 + 2*5, 6 + 5, 0}, {"memory", 0, 0, 2 * 10}, {"export", 0, 0, 2 * 15},
		})
	})
}

// measured returns a function that runs benchmarks briefly, and checks their file.
func measured(t *testing.T, flags ...string) func(names ...string) []results.Benchmark {
	return func(names ...string) []results.Benchmark {
		t.Helper()
		out := t.TempDir()
		chosen, o, err := parse(slices.Concat(flags, names,
			[]string{"-rounds", "1", "-turn", "50ms", "-connections", "3", "-rows", "3000", "-out", out}))
		assert.NoError(t, err)
		o.postgres = ephemeral.Postgres(t)
		var printed strings.Builder
		got := assert.Must(runAll(t.Context(), chosen, o, &printed))(t)
		tables, err := os.ReadFile(filepath.Join(out, "results.md"))
		described := regexp.MustCompile(`# Results\n\nCommit \S+, .* go1\..*: [1-9]\d* CPUs \(.+\), .*load averages [\d.]+ .* 3 connections, 1 rounds, turns of 50ms; `)
		assert.That(t, described.Match(tables), "the results do not describe the run:\n%.500s", tables)
		for _, text := range []string{string(tables), printed.String()} {
			for _, b := range got {
				for _, c := range b.Cases {
					assert.That(t, strings.Contains(text, "| "+c.Name+" "),
						"%v; the tables of %s have no row for %s:\n%s", err, b.Name, c.Name, text)
				}
			}
		}
		return got
	}
}

func check(t *testing.T, measure func(names ...string) []results.Benchmark, want []size) {
	t.Helper()
	var names []string
	for _, s := range want {
		names = append(names, s.name)
	}
	var sizes []size
	for _, b := range measure(names...) {
		s := size{name: b.Name, cases: len(b.Cases), values: len(b.Values)}
		for _, c := range b.Cases {
			s.ratios += len(c.Ratios)
			r := c.Rounds[0]
			assert.That(t, r.Requests >= 1 && r.Rate > 0 && r.P50 > 0 && r.P99 >= r.P50 && r.Server > 0 && r.Resident > 0,
				"%s, %s is not measured: %+v", b.Name, c.Name, r)
			for _, ratio := range c.Ratios {
				assert.That(t, ratio.Median > 0, "%s, %s is compared with nothing: %+v", b.Name, c.Name, ratio)
			}
		}
		for _, v := range b.Values {
			if v.Median <= 0 && v.Unit != "MB" { // the memory need not grow
				t.Errorf("%s: %s is not measured", b.Name, v.Name)
			}
		}
		sizes = append(sizes, s)
	}
	diff := cmp.Diff(want, sizes, cmp.AllowUnexported(size{}))
	assert.That(t, diff == "", "cases, ratios and values (-want +got):\n%s", diff)
}

func TestRatio_ComparesWithinEachRound(t *testing.T) {
	t.Parallel()
	floor := results.Case{Rounds: []results.Round{{Server: 8, Store: 2}, {Server: 16, Store: 4}, {}}}
	own := results.Case{Rounds: []results.Round{{Server: 10, Store: 10}, {Server: 10, Store: 10}, {Server: 9, Store: 9}}}
	got := comparison{"floor", cpu(), 1.25}.ratio(own, floor)
	want := results.Value{Name: "CPU", Unit: "× floor", Figure: results.Figure{Median: 1.5, Min: 1, Max: 2}, AtMost: 1.25}
	assert.Equal(t, got, want, "ratio")
}

func TestParse_RefusesUnknownBenchmarks(t *testing.T) {
	t.Parallel()
	_, _, err := parse([]string{"get", "gte"})
	assert.That(t, err != nil && strings.Contains(err.Error(), "get, count, add, latency"),
		"got %v, want an error that lists the benchmarks", err)
}

// Both floors of carts answer with the same five lines.
func TestFloors_AnswerTheSameCart(t *testing.T) {
	t.Parallel()
	assert.Must(onStage(t.Context(), options{}, newSamples(options{}), func(ctx context.Context, s *stage) (results.Benchmark, error) {
		redis, err := s.redis(ctx, "redis-server")
		if err != nil {
			return results.Benchmark{}, err
		}
		answers := map[string][]byte{}
		for _, name := range []string{"floor-get", "floor-add"} {
			floor, err := openFloor(ctx, s, name, &shop{settings: []string{"REDIS_URL=" + redis.url}, server: &server{}})
			if err != nil {
				return results.Benchmark{}, err
			}
			for i := range fewLines {
				response, err := http.Post(floor.server.url+"/floor", "application/json", bytes.NewReader(addition(i)))
				if err != nil {
					return results.Benchmark{}, err
				}
				answers[name], err = io.ReadAll(response.Body)
				assert.That(t, err == nil && response.StatusCode == http.StatusOK, "%s: %s, %v", name, response.Status, err)
			}
		}
		if get, add := answers["floor-get"], answers["floor-add"]; len(get) != len(add) || len(get) < 2000 {
			t.Errorf("floor-get answers %d bytes, floor-add %d:\n%s\n%s", len(get), len(add), get, add)
		}
		return results.Benchmark{}, nil
	}))(t)
}
