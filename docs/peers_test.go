package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestPeersPage_NamesAVerdictAndATestForEachBehavior(t *testing.T) {
	t.Parallel()
	tests := testNames(t)
	if len(tests) < 100 {
		t.Fatalf("found %d tests: this test does not read all", len(tests))
	}
	for _, fault := range faultsOf(string(read(t, "peers.md")), tests) {
		t.Error(fault)
	}
}

// The test above must be able to fail.
func TestPeersPage_FaultsAreFound(t *testing.T) {
	t.Parallel()
	const (
		counts = "in 1 behaviors\n**%s**\n| behavior | found in | this cart | shown by |\n|---|---|---|---|\n"
		same   = "1 are the same, 0 are better, 0 differ."
		differ = "0 are the same, 0 are better, 1 differ."
	)
	tests := map[string]bool{"TestA": true}
	for name, tc := range map[string]struct{ count, row, want string }{
		"nothing wrong":         {same, "| It adds. | Spree | same | `TestA` |", ""},
		"nothing wrong, with 2": {same, "| It adds. | Spree | same | `TestA`, `TestA` |", ""},
		"nothing wrong, a link": {differ, "| It adds. | Spree | differs: [why](cart.md#adding) | `TestA` |", ""},
		"wrong count":           {differ, "| It adds. | Spree | same | `TestA` |", "counts"},
		"no verdict":            {same, "| It adds. | Spree | | `TestA` |", "verdict"},
		"unknown verdict":       {same, "| It adds. | Spree | equal | `TestA` |", "verdict"},
		"no test":               {same, "| It adds. | Spree | same | |", "test"},
		"a test to be named":    {same, "| It adds. | Spree | same | TODO `TestA` |", "test"},
		"unknown test":          {same, "| It adds. | Spree | same | `TestB` |", "TestB"},
		"no product":            {same, "| It adds. | | same | `TestA` |", "found in"},
		"a cell too few":        {same, "| It adds. | same | `TestA` |", "cells"},
		"no link":               {differ, "| It adds. | Spree | differs: why | `TestA` |", "link"},
		"no anchor":             {differ, "| It adds. | Spree | differs: [why](cart.md) | `TestA` |", "link"},
	} {
		faults := faultsOf(fmt.Sprintf(counts, tc.count)+tc.row+"\n", tests)
		if tc.want == "" && len(faults) > 0 || tc.want != "" && !strings.Contains(strings.Join(faults, "\n"), tc.want) {
			t.Errorf("%s: reports %q, want %q", name, faults, tc.want)
		}
	}
}

var (
	testCell   = regexp.MustCompile("^`Test\\w+`(, `Test\\w+`)*$")
	testName   = regexp.MustCompile(`Test\w+`)
	reasonLink = regexp.MustCompile(`^differs: \[[^]]+\]\([^)#]+#[^)]+\)$`) // TestPages_LinkToWhatExists checks the anchor
)

// faultsOf reports what is wrong with the page. tests has the names of all tests.
func faultsOf(page string, tests map[string]bool) (faults []string) {
	count, seen := map[string]int{}, map[string]bool{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| behavior |") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 {
			faults = append(faults, fmt.Sprintf("%s: %d cells, want 4", line, len(cells)))
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if behavior := cells[0]; behavior == "" || seen[behavior] {
			faults = append(faults, fmt.Sprintf("%s: no behavior, or a repeated one", line))
		}
		seen[cells[0]] = true
		word, _, _ := strings.Cut(cells[2], ":")
		count[word]++
		for _, fault := range rowFaults(cells, tests) {
			faults = append(faults, cells[0]+" "+fault)
		}
	}
	want := fmt.Sprintf("**%d are the same, %d are better, %d differ.**", count["same"], count["better"], count["differs"])
	if total := "in " + strconv.Itoa(len(seen)) + " behaviors"; !strings.Contains(page, want) || !strings.Contains(page, total) {
		faults = append(faults, fmt.Sprintf("counts are not %q and %q", total, want))
	}
	return faults
}

// rowFaults reports what is wrong with one row.
func rowFaults(cells []string, tests map[string]bool) (faults []string) {
	if cells[1] == "" {
		faults = append(faults, "found in no product")
	}
	verdict, named := cells[2], cells[3]
	switch {
	case verdict == "same", strings.HasPrefix(verdict, "better: "):
	case strings.HasPrefix(verdict, "differs: "):
		if !reasonLink.MatchString(verdict) {
			faults = append(faults, "has no link to the section with the reason")
		}
	default:
		faults = append(faults, fmt.Sprintf("has the verdict %q, want same, better or differs", verdict))
	}
	if !testCell.MatchString(named) {
		faults = append(faults, fmt.Sprintf("has the test %q, want names of tests", named))
	}
	for _, name := range testName.FindAllString(named, -1) {
		if !tests[name] {
			faults = append(faults, name+" does not exist")
		}
	}
	return faults
}

// testNames returns the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range declared.FindAllSubmatch(source, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
