package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// The picture of the packages in docs/architecture.md shows imports that are made. The picture
// and its table leave out no package of the service.
func TestArchitecture_ShowsThePackagesAndTheirImports(t *testing.T) {
	t.Parallel()
	page := source(t, "docs/architecture.md")
	picture := codeUnder(t, page, "The packages and the servers", "mermaid")[0]

	packages := map[string]string{} // by their id in the picture
	for _, box := range regexp.MustCompile(`(?m)^ *(\w+)\["([\w/]+)(?:<br>[^"]*)?"\]$`).FindAllStringSubmatch(picture, -1) {
		packages[box[1]] = box[2]
	}
	made := map[string][]string{} // by the package that imports, except in tests
	for _, file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			made[path.Dir(file)] = append(made[path.Dir(file)], importsOf(t, file)...)
		}
	}
	arrows := 0
	for _, line := range regexp.MustCompile(`(?m)^ *\w+(?: --> \w+)+$`).FindAllString(picture, -1) {
		chain := strings.Split(strings.TrimSpace(line), " --> ")
		for i, from := range chain[:len(chain)-1] {
			arrows++
			to := chain[i+1]
			assert.That(t, packages[from] != "" && slices.Contains(made[packages[from]], module+"/"+packages[to]),
				"%s --> %s: the package %q does not import %q", from, to, packages[from], packages[to])
		}
	}
	assert.That(t, arrows >= 9, "found %d arrows: this test does not read all", arrows)
	shown := slices.Collect(maps.Values(packages))
	for _, row := range regexp.MustCompile("(?m)^\\| `([\\w/]+)` \\|").FindAllStringSubmatch(page, -1) {
		shown = append(shown, row[1])
	}
	for pkg := range imports {
		area, _, _ := strings.Cut(pkg, "/")
		isOfAService := slices.Contains([]string{"auth", "cart", "subscriptions"}, area) && pkg != "cart/carttest"
		assert.That(t, !isOfAService || slices.Contains(shown, pkg), "the page lacks the package %s", pkg)
	}
	for _, pkg := range shown {
		_, exists := imports[pkg]
		assert.That(t, exists || strings.HasPrefix(pkg, wiring+"/"), "the page has the package %s, which does not exist", pkg)
	}
}

// The pages name only targets of make that exist, also in their tables and in commands that take too
// long for a test.
func TestMake_HasTheTargetsOfThePages(t *testing.T) {
	t.Parallel()
	makefile := source(t, "Makefile")
	for _, page := range []string{".github/CONTRIBUTING.md", "README.md", "docs/guarantees.md", "docs/performance.md", "docs/deploy.md"} {
		targets := regexp.MustCompile("(?m)(?:^|`|[A-Z0-9] )make ([a-z]+)").FindAllStringSubmatch(source(t, page), -1)
		for _, target := range targets {
			assert.That(t, regexp.MustCompile(`(?m)^`+target[1]+`:`).MatchString(makefile),
				"%s: make has no target %s", page, target[1])
		}
		assert.That(t, len(targets) != 0, "%s names no target", page)
	}
}

// source returns a file of the repository.
func source(t *testing.T, path string) string {
	t.Helper()
	return string(assert.Must(os.ReadFile(filepath.Join(root, path)))(t))
}

// maxSize is the size in bytes that the stripped program may have, without debug information.
const maxSize = 32_000_000

// If one function that is reachable finds methods by name, the linker keeps all exported methods
// of all packages, which is a third of the program. Libraries do so without need: they import
// text/template, or call methods of the values that they are given.
func TestProgram_IsSmallBecauseNothingFindsMethodsByName(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	file := filepath.Join(t.TempDir(), "commerce")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags=nomsgpack", "-trimpath", "-ldflags=-s -w -dumpdep", "-o", file, ".")
	var edges bytes.Buffer // which function needs which, on standard error
	build.Stderr = &edges
	err := build.Run()
	assert.Require(t, err == nil, "go build: %v\n%.1000s", err, edges.String())
	assert.Require(t, strings.Contains(edges.String(), "main.main"),
		"the linker does not say what it keeps: %.1000s", edges.String())
	for edge := range strings.Lines(edges.String()) {
		assert.That(t, !strings.Contains(edge, "<ReflectMethod>"), "finds methods by name: %s", edge)
	}
	size := assert.Must(os.Stat(file))(t).Size()
	assert.That(t, size <= maxSize, "the program has %d bytes, more than %d", size, maxSize)
}
