package torture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// Each promise of the page names the command that tests it, and each test has a promise.
func TestGuaranteesPage_NamesTheCommandForEachTest(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	promises := numbersIn(page, `(?m)^## (\d+)\. `)
	if commands := numbersIn(page, "(?m)^`make torture PROMISE=0?(\\d+)`"); !slices.Equal(commands, promises) {
		t.Errorf("the page has commands for %v, and promises %v", commands, promises)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	if tests := numbersIn(source, `(?m)^func TestPromise0?(\d+)_`); !slices.Equal(tests, promises) {
		t.Errorf("there are tests of %v, and promises %v", tests, promises)
	}
}

// numbersIn returns the distinct submatches of a pattern, sorted.
func numbersIn(text []byte, pattern string) []string {
	var found []string
	for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		found = append(found, string(match[1]))
	}
	slices.Sort(found)
	return slices.Compact(found)
}
