package torture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"commerce/deploy/assert"
)

// Each promise of the page names the command that tests it, and each test has a promise.
func TestGuaranteesPage_NamesTheCommandForEachTest(t *testing.T) {
	t.Parallel()
	page := assert.Must(os.ReadFile("../../../docs/guarantees.md"))(t)
	promises := numbersIn(page, `(?m)^## (\d+)\. `)
	commands := numbersIn(page, "(?m)^`make torture PROMISE=0?(\\d+)`")
	assert.That(t, slices.Equal(commands, promises), "the page has commands for %v, and promises %v", commands, promises)
	files := assert.Must(filepath.Glob("*_test.go"))(t)
	var source []byte
	for _, file := range files {
		source = append(source, assert.Must(os.ReadFile(file))(t)...)
	}
	tests := numbersIn(source, `(?m)^func TestPromise0?(\d+)_`)
	assert.That(t, slices.Equal(tests, promises), "there are tests of %v, and promises %v", tests, promises)
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
