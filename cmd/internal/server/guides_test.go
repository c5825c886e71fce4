package server_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// guides are the pages whose examples a reader can paste into a terminal, one after the
// other, while the demo runs.
var guides = []string{"README.md", "docs/cart.md", "docs/storefront.md", "docs/mobile.md", "docs/subscriptions.md"}

// otherwiseTested says of each other page with shell commands which tests hold it to the truth.
// Its commands need clusters, backups, hours, or servers of the reader's own.
var otherwiseTested = map[string]string{
	".github/CONTRIBUTING.md": "cmd/commerce/contributing_test.go",        // looks up the targets and tests that the page names
	"docs/data.md":            "cmd/commerce/import_test.go",              // imports the lines of the page
	"docs/deploy.md":          "deploy/check/systemd_linux_test.go",       // runs the services from the page's files
	"docs/guarantees.md":      "cmd/internal/torture/page_test.go",        // compares the page's commands with its tests
	"docs/operations.md":      "cmd/commerce/settings_test.go",            // compares the page's settings with the program's
	"docs/performance.md":     "cmd/bench/bench_test.go",                  // runs the benchmarks end to end
	"docs/runbook.md":         "cmd/internal/torture/backupredis_test.go", // runs the commands of its backups and restores
	"docs/scale.md":           "cmd/bench/capacity_test.go",               // runs each command and compares what it prints
}

// mostNotRun is how many examples of the guides may be exempt from running.
const mostNotRun = 10

func TestGuides_PrintWhatTheyShow(t *testing.T) {
	t.Parallel()
	installed := installPackages(t, "npmtrip")
	for _, page := range guides {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			examples := examplesOf(t, page)
			if len(examples) < 4 {
				t.Fatalf("found only %d examples", len(examples))
			}
			for _, fault := range pasteOnDemo(t, installed, examples) {
				t.Error(fault)
			}
		})
	}
}

// pasteOnDemo pastes the examples while a demo of their own runs, in a folder where npm
// install finds the client. It returns their faults. On a busy machine, the demo may answer
// 503 or 504. Then it begins again.
func pasteOnDemo(t *testing.T, installed string, examples []example) []string {
	t.Helper()
	busy := regexp.MustCompile(`\bstatus=50[34]\b`)
	for tries := 1; ; tries++ {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(installed)); err != nil {
			t.Fatal(err)
		}
		d := startDemo(t)
		faults := terminal{dir: dir, url: d.url}.paste(t, examples)
		if len(faults) == 0 || tries == 3 || !busy.MatchString(d.log.String()) {
			return faults
		}
	}
}

func TestGuides_AreNearlyAllRun(t *testing.T) {
	t.Parallel()
	exempt := 0
	for _, page := range guides {
		for _, e := range examplesOf(t, page) {
			if e.notRun != "" {
				exempt++
			}
		}
	}
	if exempt > mostNotRun {
		t.Errorf("%d examples are marked not-run, want at most %d", exempt, mostNotRun)
	}
}

// A new page with commands is a guide, or a test of its own keeps it true.
func TestPages_WithCommandsAreTested(t *testing.T) {
	t.Parallel()
	shell := regexp.MustCompile("(?m)^ *```(sh|bash|shell|zsh|console)\\b")
	seen := 0
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "node_modules", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !shell.Match(text) {
			return err
		}
		seen++
		page, _ := filepath.Rel(repository, path)
		page = filepath.ToSlash(page)
		if slices.Contains(guides, page) {
			return nil
		}
		if test := otherwiseTested[page]; test == "" {
			t.Errorf("no test runs the commands of %s: list it as a guide", page)
		} else if source, err := os.ReadFile(filepath.Join(repository, test)); err != nil || !strings.Contains(string(source), "func Test") {
			t.Errorf("%s: the test %s does not exist (%v)", page, test, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(guides) + len(otherwiseTested); seen != want {
		t.Errorf("%d pages have commands, and the lists of this test have %d", seen, want)
	}
}
