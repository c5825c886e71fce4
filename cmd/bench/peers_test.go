package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	got := assert.Must(onStage(t.Context(), o, newSamples(o), func(ctx context.Context, s *stage) (results.Benchmark, error) {
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
		lock := assert.Must(os.ReadFile("peers/" + p.folder + "/package-lock.json"))(t)
		if pinned := `"node_modules/` + p.main + "\": {\n      \"version\": \"" + version + `"`; !strings.Contains(string(lock), pinned) {
			t.Errorf("%s: the lock file does not have version %q of %s", p.folder, version, p.main)
		}
		assert.That(t, !strings.Contains(string(lock), `"resolved"`), "%s: the lock file names a registry", p.folder)
	}
}

// measuredIn returns the rows of the tables of a committed run, by their first cells. The last of rows
// with the same one counts.
func measuredIn(t *testing.T, file string) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for line := range strings.Lines(string(assert.Must(os.ReadFile("../../docs/performance/" + file))(t))) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) > 3 {
			name, _, _ := strings.Cut(cells[1], " (") // the number of failed requests
			rows[name] = cells[2 : len(cells)-1]
		}
	}
	return rows
}

// The page has a table with the figures of the committed run of peers, and a sentence with those of the
// run against minimal programs.
func TestPerformance_HasTheFiguresOfTheRuns(t *testing.T) {
	t.Parallel()
	page := string(assert.Must(os.ReadFile("../../docs/performance.md"))(t))
	median := func(figure string) string { return strings.Fields(figure)[0] }
	own := measuredIn(t, "results.md")
	for _, figure := range []string{
		"a read of a cart of five lines takes " + median(own["get: guest, 5 lines: CPU"][0]) + " × the CPU time",
		"an add " + median(own["add: add: CPU"][0]) + " ×",
	} {
		assert.That(t, strings.Contains(strings.Join(strings.Fields(page), " "), figure), "the page does not have %q", figure)
	}

	peers := measuredIn(t, "peers/results.md")
	rows := [][]string{{"CPU per read of a cart of five lines", "1"}, {"CPU per add", "1"}, {"memory under load"}, {"lost of 40 adds, sent two at a time"}}
	names := []string{thisService}
	for _, p := range []program{small(), vendure(), medusa()} {
		names = append(names, p.title+" "+assert.Must(p.version())(t))
	}
	for i, name := range names {
		if i > 0 { // the others are compared with this service
			rows[0] = append(rows[0], median(peers["read: "+name+": CPU"][0])+" ×")
			rows[1] = append(rows[1], median(peers["add: "+name+": CPU"][0])+" ×")
		}
		rows[2] = append(rows[2], peers["add: "+name][5]+" MB")
		rows[3] = append(rows[3], median(peers["lost of 40 adds, two at a time: "+name][0]))
	}
	for _, cells := range rows {
		row := "| " + strings.Join(cells, " | ") + " |\n"
		assert.That(t, strings.Contains(page, row), "the page does not have this row of the run:\n%s", row)
	}
	text := string(assert.Must(os.ReadFile("../../docs/performance/peers/results.md"))(t))
	began := regexp.MustCompile(`\d{4}-\d\d-\d\d`).FindString(text)
	assert.That(t, strings.Contains(page, "On "+began), "the page does not have the date of the run, %s", began)
}
