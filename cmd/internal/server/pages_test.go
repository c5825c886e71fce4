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

// mostNotRun is how many examples of all pages may be exempt from running.
const mostNotRun = 10

// Every shell block of every page runs in a test: as part of a guide or a manual, or in the test
// that a comment above the block names. Only a few are exempt, and say why.
func TestPages_HaveOnlyCommandsThatRun(t *testing.T) {
	t.Parallel()
	tests := testsOfTheRepository(t)
	var notRun []string
	seen := map[string]bool{}
	for _, page := range pagesWithCommands(t) {
		seen[page] = true
		pasted := slices.Contains(guides, page) || slices.Contains(manuals, page)
		for _, e := range examplesOf(t, page) {
			switch {
			case e.notRun != "":
				notRun = append(notRun, page+": "+e.notRun)
			case e.runBy == "make verify": // by deploy/pages.sh
			case e.runBy != "":
				source, exists := tests[e.runBy]
				assert(t, exists && strings.Contains(source, filepath.Base(page)), "%s: the test %s does not exist, or its package does not read the page", page, e.runBy)
			case !pasted:
				t.Errorf("%s: no test runs this: list the page as a guide, or name the test above the block\n%s", page, e.script)
			}
		}
	}
	for _, page := range slices.Concat(guides, manuals) {
		assert(t, seen[page], "%s has no commands", page)
	}
	assert(t, len(notRun) <= mostNotRun, "%d examples do not run, want at most %d:\n%s", len(notRun), mostNotRun, strings.Join(notRun, "\n"))
}

// Commands that do not run here name only files that exist.
func TestPages_NameFilesThatExist(t *testing.T) {
	t.Parallel()
	files := regexp.MustCompile(`[^>\w/](deploy/[\w./*-]+)`) // after > is a file that the command writes
	seen := 0
	for _, page := range pagesWithCommands(t) {
		for _, e := range examplesOf(t, page) {
			if e.notRun == "" {
				continue
			}
			for _, file := range files.FindAllStringSubmatch(e.script, -1) {
				seen++
				found, err := filepath.Glob(filepath.Join(repository, file[1]))
				assert(t, err == nil && len(found) != 0, "%s: no file %s (%v)\n%s", page, file[1], err, e.script)
			}
		}
	}
	assert(t, seen >= 5, "found only %d files", seen)
}

// pagesWithCommands returns the pages of the repository that have shell blocks.
func pagesWithCommands(t *testing.T) (pages []string) {
	t.Helper()
	shell := regexp.MustCompile("(?m)^ *```(sh|bash|shell|zsh|console)\\b")
	for page, text := range filesOfTheRepository(t, ".md") {
		if shell.MatchString(text) {
			pages = append(pages, page)
		}
	}
	slices.Sort(pages)
	return pages
}

// testsOfTheRepository returns the tests by their names, each with all tests of its package.
func testsOfTheRepository(t *testing.T) map[string]string {
	t.Helper()
	packages, tests := map[string]string{}, map[string]string{}
	for file, text := range filesOfTheRepository(t, "_test.go") {
		packages[filepath.Dir(file)] += text
	}
	for _, source := range packages {
		for _, test := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(source, -1) {
			tests[test[1]] = source
		}
	}
	return tests
}

// filesOfTheRepository returns the files whose names have the ending, by their paths.
func filesOfTheRepository(t *testing.T, ending string) map[string]string {
	t.Helper()
	files := map[string]string{}
	noError(t, filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "node_modules", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ending) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(repository, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return files
}
