package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"commerce/cmd/bench/results"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// The small cart keeps every add, as measurePeers checks. Other peers are too large to test.
func TestPeers_CompareTheServiceToTheSmallCart(t *testing.T) {
	t.Parallel()
	binary := assert.Must(build(t.Context(), t.TempDir()))(t)
	o := options{rounds: 1, turn: 50 * time.Millisecond, connections: 3, binary: binary, postgres: ephemeral.Postgres(t)}
	got := assert.Must(onStage(t.Context(), o, func(ctx context.Context, s *stage) (results.Benchmark, error) {
		service, err := openService(ctx, s)
		if err != nil {
			return results.Benchmark{}, err
		}
		other, err := small().open(ctx, s)
		if err != nil {
			return results.Benchmark{}, err
		}
		return measurePeers(ctx, o, []*peer{service, other})
	}))(t)
	assert.Require(t, len(got.Cases) == 2*2 && len(got.Values) == 2*5,
		"got %d cases and %d values, want 4 and 10", len(got.Cases), len(got.Values))
	for i, c := range got.Cases {
		if r := c.Rounds[0]; r.Rate <= 0 || r.Server <= 0 || r.Store <= 0 || r.Resident <= 0 || len(c.Ratios) != i%2 {
			t.Errorf("%s is not measured or not compared: %+v", c.Name, c)
		}
	}
}

func TestPeers_ProgramsParse(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("peers/*/*js")
	assert.Require(t, err == nil && len(files) >= 6, "%v; this test does not see all programs: %v", err, files)
	for _, file := range files {
		said, err := exec.CommandContext(t.Context(), "node", "--check", file).CombinedOutput()
		assert.That(t, err == nil, "%s: %v\n%s", file, err, said)
	}
}

// Versions in a lock file are the ones in its package.json, and no address of a registry is in it.
func TestPeers_AreLocked(t *testing.T) {
	t.Parallel()
	for _, p := range []program{small(), vendure(), medusa()} {
		version := assert.Must(p.version())(t)
		lock := assert.Must(peerFiles.ReadFile("peers/" + p.folder + "/package-lock.json"))(t)
		if pinned := `"node_modules/` + p.main + "\": {\n      \"version\": \"" + version + `"`; !strings.Contains(string(lock), pinned) {
			t.Errorf("%s: the lock file does not have version %q of %s", p.folder, version, p.main)
		}
		assert.That(t, !strings.Contains(string(lock), `"resolved"`), "%s: the lock file names a registry", p.folder)
	}
}

// The page has a table with the figures of the committed run of peers.
func TestPerformance_HasTheFiguresOfThePeers(t *testing.T) {
	t.Parallel()
	report := assert.Must(results.Read("../../docs/performance/peers/" + resultsFile))(t)
	page := assert.Must(os.ReadFile("../../docs/performance.md"))(t)
	read, add := []string{"CPU per read of a cart of five lines"}, []string{"CPU per add"}
	memory, lost := []string{"memory under load"}, []string{"lost of 40 adds, sent two at a time"}
	b := report.Benchmark(onDemand)
	median := func(c results.Case, of func(results.Round) float64) float64 { return c.Figure(of).Median }
	cpu := func(c results.Case) string { // compared with this service, which has no ratios
		for _, ratio := range c.Ratios {
			return results.FigureOf(ratio.Median).String() + " ×"
		}
		return "1"
	}
	for _, c := range b.Cases {
		if strings.HasPrefix(c.Name, "read: ") {
			read = append(read, cpu(c))
			continue
		}
		add = append(add, cpu(c))
		memory = append(memory, results.FigureOf(median(c, func(r results.Round) float64 { return r.Resident })).String()+" MB")
	}
	for _, v := range b.Values {
		if strings.HasPrefix(v.Name, "lost of ") {
			lost = append(lost, results.FigureOf(v.Median).String())
		}
	}
	for _, cells := range [][]string{read, add, memory, lost} {
		row := "| " + strings.Join(cells, " | ") + " |\n"
		assert.That(t, len(cells) == 1+len(openers()) && strings.Contains(string(page), row),
			"the page does not have this row of the run:\n%s", row)
	}
	began := report.Began.Format(time.DateOnly)
	assert.That(t, strings.Contains(string(page), began), "the page does not have the date of the run, %s", began)
}
