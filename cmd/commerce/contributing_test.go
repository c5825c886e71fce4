package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The commands of CONTRIBUTING.md take long, so this only checks that the targets of make and
// the tests that they name exist.
func TestContributing_NamesTargetsAndTestsThatExist(t *testing.T) {
	t.Parallel()
	page := source(t, ".github/CONTRIBUTING.md")
	makefile := source(t, "Makefile")
	targets := regexp.MustCompile("(?m)(?:^|`|[0-9] )make ([a-z]+)").FindAllStringSubmatch(page, -1)
	for _, target := range targets {
		if !regexp.MustCompile(`(?m)^` + target[1] + `:`).MatchString(makefile) {
			t.Errorf("make has no target %s", target[1])
		}
	}
	tests := regexp.MustCompile(`(?m)go test -tags=nomsgpack \./(\S+)(?: -run '?([\w|]+)'?)? -count=1$`).FindAllStringSubmatch(page, -1)
	for _, run := range tests {
		pattern := regexp.MustCompile(`(?m)^func (?:` + run[2] + `)`)
		if run[2] == "" {
			pattern = regexp.MustCompile(`(?m)^func Test`)
		}
		if !pattern.MatchString(testsIn(t, run[1])) {
			t.Errorf("./%s has no test %s", run[1], run[2])
		}
	}
	if len(targets) < 5 || len(tests) < 4 || strings.Count(page, "go test ") != len(tests) {
		t.Errorf("found %d targets and %d of %d tests", len(targets), len(tests), strings.Count(page, "go test "))
	}
}

// source returns a file of the repository.
func source(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// testsIn returns the test files of a package.
func testsIn(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
