package main

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
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
	made := map[string][]string{}
	for _, file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			made[path.Dir(file)] = append(made[path.Dir(file)], ours(t, file)...)
		}
	}
	arrows := 0
	for _, line := range regexp.MustCompile(`(?m)^ *\w+(?: --> \w+)+$`).FindAllString(picture, -1) {
		chain := strings.Split(strings.TrimSpace(line), " --> ")
		for i, from := range chain[:len(chain)-1] {
			arrows++
			if to := chain[i+1]; packages[from] == "" || !slices.Contains(made[packages[from]], packages[to]) {
				t.Errorf("%s --> %s: the package %q does not import %q", from, to, packages[from], packages[to])
			}
		}
	}
	if arrows < 9 {
		t.Errorf("found %d arrows: this test does not read all", arrows)
	}
	shown := slices.Collect(maps.Values(packages))
	for _, row := range regexp.MustCompile("(?m)^\\| `([\\w/]+)` \\|").FindAllStringSubmatch(page, -1) {
		shown = append(shown, row[1])
	}
	for pkg := range imports {
		area, _, _ := strings.Cut(pkg, "/")
		if slices.Contains([]string{"auth", "cart", "subscriptions"}, area) && pkg != "cart/carttest" && !slices.Contains(shown, pkg) {
			t.Errorf("the page lacks the package %s", pkg)
		}
	}
	for _, pkg := range shown {
		if _, exists := imports[pkg]; !exists && !strings.HasPrefix(pkg, wiring+"/") {
			t.Errorf("the page has the package %s, which does not exist", pkg)
		}
	}
}
