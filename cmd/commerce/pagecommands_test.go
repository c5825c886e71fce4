package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The pages name only targets of make that exist, also in their tables and in commands that take too
// long for a test.
func TestMake_HasTheTargetsOfThePages(t *testing.T) {
	t.Parallel()
	makefile := source(t, "Makefile")
	for _, page := range []string{".github/CONTRIBUTING.md", "README.md", "docs/guarantees.md", "docs/performance.md", "docs/deploy.md"} {
		targets := regexp.MustCompile("(?m)(?:^|`|[A-Z0-9] )make ([a-z]+)").FindAllStringSubmatch(source(t, page), -1)
		for _, target := range targets {
			if !regexp.MustCompile(`(?m)^` + target[1] + `:`).MatchString(makefile) {
				t.Errorf("%s: make has no target %s", page, target[1])
			}
		}
		if len(targets) == 0 {
			t.Errorf("%s names no target", page)
		}
	}
}

// source returns a file of the repository.
func source(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
