package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"commerce/cmd/bench/results"
	"commerce/deploy/ephemeral"
)

// The small cart keeps every add, as checkAdded sees, and is compared to the service. The other
// peers are too large for a test.
func TestPeers_CompareTheServiceToTheSmallCart(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	binary, err := build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := options{rounds: 1, turn: 50 * time.Millisecond, connections: 3, binary: binary, postgres: ephemeral.Postgres(t)}
	s, err := newStage(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	service, err := openServicePeer(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	small, err := openSmall(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := measurePeers(t.Context(), o, []*peer{service, small})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Cases) != 2*2 || len(got.Values) != 2*5 {
		t.Errorf("got %d cases and %d values, want 4 and 10", len(got.Cases), len(got.Values))
	}
	for _, c := range got.Cases {
		if c.Rate.Median <= 0 || c.Server.Median <= 0 || c.Store.Median <= 0 || c.Resident.Median <= 0 {
			t.Errorf("%s is not measured: %+v", c.Name, c)
		}
	}
	for _, kind := range []string{"read: ", "add: "} {
		c, _ := got.Case(kind + small.name)
		if len(c.Ratios) != 1 || c.Ratios[0].Of != kind+thisService {
			t.Errorf("%s is compared with %+v", c.Name, c.Ratios)
		}
	}
}

func TestPeers_ProgramsParse(t *testing.T) {
	t.Parallel()
	checked := 0
	err := fs.WalkDir(peerFiles, "peers", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "js") {
			return err
		}
		checked++
		if said, err := exec.CommandContext(t.Context(), "node", "--check", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, said)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 6 {
		t.Errorf("checked %d programs: this test does not see all", checked)
	}
}

// Versions in a lock file are the ones in its package.json, and no address of a registry is in it.
func TestPeers_AreLocked(t *testing.T) {
	t.Parallel()
	for folder, name := range map[string]string{"small": "fastify", "vendure": "@vendure/core", "medusa": "@medusajs/medusa"} {
		version, err := versionOf(folder, name)
		if err != nil {
			t.Fatal(err)
		}
		lock, err := peerFiles.ReadFile(path.Join("peers", folder, "package-lock.json"))
		if err != nil {
			t.Fatal(err)
		}
		if pinned := `"node_modules/` + name + "\": {\n      \"version\": \"" + version + `"`; !strings.Contains(string(lock), pinned) {
			t.Errorf("%s: the lock file does not have version %q of %s", folder, version, name)
		}
		if strings.Contains(string(lock), `"resolved"`) {
			t.Errorf("%s: the lock file names a registry", folder)
		}
	}
}

func TestPeersPage_HasTheFiguresOfItsRun(t *testing.T) {
	t.Parallel()
	report, err := results.Read(filepath.FromSlash("../../docs/compared/" + resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	peers, _ := report.Benchmark("peers")
	page, readme := page(t, "docs/compared.md"), page(t, "README.md")
	for table := range strings.SplitSeq(strings.TrimSpace(peersPage(peers)), "\n\n") {
		if len(strings.Split(table, "\n")) != 2+len(openers()) || !strings.Contains(page, table+"\n") {
			t.Errorf("docs/compared.md does not have this table of its run:\n%s", table)
		}
	}
	if rows := peersSummary(peers); strings.Count(rows, "\n") != 4 || !strings.Contains(readme, rows) {
		t.Errorf("the README does not have these rows of the run:\n%s", rows)
	}
	if began := report.Began.Format(time.DateOnly); !strings.Contains(page, began) || !strings.Contains(readme, began) {
		t.Errorf("docs/compared.md and the README do not both have the date of the run, %s", began)
	}
}

// page returns a page of the repository.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
