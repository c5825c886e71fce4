package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/cmd/bench/results"
)

var update = flag.Bool("update", false, "write what capacity prints now into docs/scale.md")

// roundCosts make the arithmetic easy to follow.
func roundCosts() costs {
	return costs{read: 100, change: 200, list: 400, redisRead: 10, redisChange: 100, postgresList: 500, cart: 512, subscription: 1024}
}

func someMachines() machines {
	return machines{cores: 2, redisGiB: 16, postgresCores: 16, postgresGiB: 2048, busy: 0.5, full: 0.5}
}

func TestPlan_IsTheArithmeticOfTheCosts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		d     demand
		want  []float64 // instances, masters, GiB of Redis, shards, GiB of Postgres, replicas
		first string
		steps []string
	}{
		"the smallest": {
			demand{carts: 1, reads: 1, changes: 1, lists: 1, subscriptions: 1, stores: 1, growth: 1},
			[]float64{2, 1, 512.0 / gib, 1, 1024.0 / gib, 1},
			"CPU of an instance", nil,
		},
		// 10 + 2 + 0.4 cores, half busy, on two cores each.
		"instances": {
			demand{carts: 1, reads: 100_000, changes: 10_000, lists: 1000, subscriptions: 1, stores: 1, growth: 1},
			[]float64{13, 4, 512.0 / gib, 1, 1024.0 / gib, 1},
			"CPU of an instance",
			[]string{"One Redis to a Redis Cluster", "More masters"},
		},
		// 32 GiB in masters that are filled with 8; a growth of 2 doubles it.
		"memory of Redis": {
			demand{carts: 1 << 26, reads: 1, changes: 1, lists: 1, subscriptions: 1, stores: 1, growth: 1},
			[]float64{2, 4, 32, 1, 1024.0 / gib, 1},
			"memory of a Redis master",
			[]string{"One Redis to a Redis Cluster", "More masters"},
		},
		"growth": {
			demand{carts: 1 << 25, reads: 1, changes: 1, lists: 1, subscriptions: 1, stores: 1, growth: 2},
			[]float64{2, 4, 32, 1, 2048.0 / gib, 1},
			"memory of a Redis master",
			[]string{"One Redis to a Redis Cluster", "More masters"},
		},
		"a cluster has three masters": {
			demand{carts: 1 << 25, reads: 1, changes: 1, lists: 1, subscriptions: 1, stores: 1, growth: 1},
			[]float64{2, 3, 16, 1, 1024.0 / gib, 1},
			"memory of a Redis master",
			[]string{"One Redis to a Redis Cluster"},
		},
		// 4096 GiB on servers that are filled with 1024.
		"disk of Postgres": {
			demand{carts: 1, reads: 1, changes: 1, lists: 1, subscriptions: 1 << 32, stores: 4, growth: 1},
			[]float64{2, 1, 512.0 / gib, 4, 4096, 1},
			"disk of a Postgres",
			[]string{"Citus"},
		},
		"a large table": {
			demand{carts: 1, reads: 1, changes: 1, lists: 1, subscriptions: 1 << 28, stores: 4, growth: 1},
			[]float64{2, 1, 512.0 / gib, 1, 256, 1},
			"disk of a Postgres",
			[]string{"Partitions"},
		},
		// 20 cores, half busy, on 16 cores each.
		"replicas": {
			demand{carts: 1, reads: 1, changes: 1, lists: 40_000, subscriptions: 1, stores: 1, growth: 1},
			[]float64{17, 1, 512.0 / gib, 1, 1024.0 / gib, 3},
			"CPU of an instance",
			[]string{"Replicas of Postgres"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planFor(tc.d, someMachines(), roundCosts())
			var got []float64
			for _, n := range p.needs {
				got = append(got, n.amount)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
			if p.limits[0].what != tc.first {
				t.Errorf("breaks first: %s, want %s", p.limits[0].what, tc.first)
			}
			if diff := cmp.Diff(tc.steps, p.steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCapacity_NamesBadInput(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		"-carts 0":       `invalid value "0" for flag -carts: must be a number from 1e-06 to 1e+15`,
		"-carts x":       `invalid value "x" for flag -carts: must be a number from 1e-06 to 1e+15`,
		"-carts 1e308":   "-carts",
		"-busy 1e-320":   "-busy",
		"-reads NaN":     "-reads",
		"-growth -1":     "-growth",
		"-lists +Inf":    "-lists",
		"-busy 1.5":      "-busy and -full are shares of at most 1",
		"-coupons 3":     "-coupons",
		"more":           `no argument "more"`,
		"-from /nowhere": "/nowhere/results.json",
	} {
		err := runCapacity(strings.Fields(arguments), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", arguments, err, want)
		}
	}
	dir := t.TempDir()
	if err := (results.Report{}).Write(filepath.Join(dir, resultsFile)); err != nil {
		t.Fatal(err)
	}
	if err := runCapacity([]string{"-from", dir}, io.Discard); err == nil || !strings.Contains(err.Error(), "bench get add list sizes") {
		t.Errorf("results without figures: %v", err)
	}
}

// example is a command in docs/scale.md with what it prints.
var example = regexp.MustCompile("(?m)^```console\n\\$ go run ./cmd/bench capacity (.*)\n(?s:(.*?))^```$")

// The worked examples show what the command prints with the figures of docs/performance.
// After a new run of the benchmarks: go test ./cmd/bench -run Scale -update
func TestScale_ExamplesAreWhatCapacityPrints(t *testing.T) {
	t.Parallel()
	const path = "../../docs/scale.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	now := example.ReplaceAllStringFunc(string(text), func(block string) string {
		found++
		arguments := example.FindStringSubmatch(block)[1]
		var out strings.Builder
		if err := runCapacity(append(strings.Fields(arguments), "-from", "../../docs/performance"), &out); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(out.String()) {
			lines = append(lines, strings.TrimRight(line, " \n"))
		}
		return "```console\n$ go run ./cmd/bench capacity " + arguments + "\n" + strings.TrimSpace(strings.Join(lines, "\n")) + "\n```"
	})
	if found < 5 {
		t.Errorf("docs/scale.md has %d examples, want at least 5", found)
	}
	if *update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), now); diff != "" {
		t.Errorf("docs/scale.md (-has +capacity prints):\n%s", diff)
	}
}
