package torture

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"commerce/deploy/ephemeral"
)

// previousRelease is the commit of the release before this one.
const previousRelease = "b2d7f37bbc036899aa67fa423d8c4f0e2c282c5b"

// Requests of shoppers alternate between two releases. Each release reads what the other one
// writes, and recognizes repeats of the other one's changes. Then all shoppers return to the
// older release.
func TestPromise15_TwoReleasesShareARedis(t *testing.T) {
	t.Parallel()
	p := promised(t, 15, "two releases share a Redis", "0 wrong")
	previous := programs.compiled(t, releaseSource(t, previousRelease))
	redis, database := ephemeral.StartRedis(t), ephemeral.StartPostgres(t).URL
	if err := stock(t.Context(), previous, database); err != nil {
		t.Fatal(err)
	}
	settings := []string{"REDIS_URL=" + redis.URL, "DATABASE_URL=" + database}
	older := startProgram(t, previous, settings...) // before the migration, since it does not start after it
	command(t, programs.compiled(t, ""), settings[1:], "migrate", "up")
	newer := startService(t, settings...)
	pair := &releases{p: p, older: newShopper(t, older), newer: newShopper(t, newer)}

	phases := []struct {
		name  string
		newer int // requests of ten that go to the newer release
	}{{"both", 5}, {"newer alone", 10}, {"older alone, back again", 0}, {"both again", 5}}
	steps, visitors := sized(10, 400), sized(12, 48)
	bar := p.progress("calls", len(phases)*steps*visitors)
	var visits []*releaseVisit
	for i := range visitors {
		visits = append(visits, newReleaseVisit(t, pair, i))
	}
	for _, phase := range phases {
		var all sync.WaitGroup
		for _, v := range visits {
			all.Go(func() {
				for range steps {
					v.step(phase.newer)
					_ = bar.Add(1)
				}
			})
		}
		all.Wait()
	}
	for _, name := range []string{"changes", "replays", "merges", "comparisons"} {
		total := int64(0)
		for _, v := range visits {
			total += v.counts[name]
		}
		if p.counted(name, total); total == 0 {
			t.Errorf("no %s", name)
		}
	}
}

// releaseSource returns a directory with the source of a commit.
func releaseSource(t testing.TB, commit string) string {
	t.Helper()
	const root = "../../.."
	shallow, err := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "--is-shallow-repository").Output()
	if err != nil || strings.TrimSpace(string(shallow)) == "true" {
		t.Skip("needs the history of the repository, and this is not a clone with its history")
	}
	archive := filepath.Join(t.TempDir(), "source.tar")
	for _, command := range [][]string{
		{"git", "-C", root, "archive", "--output", archive, commit},
		{"tar", "-C", filepath.Dir(archive), "-xf", archive},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command[0], err, out)
		}
	}
	return filepath.Dir(archive)
}
