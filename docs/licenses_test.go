package docs_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"

	"commerce/deploy/assert"
)

// accepted are the licenses, by SPDX, of what may be given away without its source.
var accepted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// acceptedInTests are further licenses of modules that are not given away.
var acceptedInTests = []string{"0BSD", "BlueOak-1.0.0", "CC-BY-4.0", "CC-BY-SA-4.0", "(MIT OR CC0-1.0)", "MPL-2.0", "OFL-1.1", "Python-2.0"}

func TestLicenses_OfEachModuleAreListedAndAccepted(t *testing.T) {
	t.Parallel()
	inBinary := modulesOf(t, "..", 10, "./cmd/commerce")
	elsewhere := modulesOf(t, "..", 10, "-test", "./...", "tool")
	for path := range inBinary {
		delete(elsewhere, path)
	}
	page := string(read(t, "licenses.md"))
	for _, part := range []struct {
		section  string
		modules  map[string]string
		accepted []string
	}{
		{"In the binary", inBinary, accepted},
		{"In tests and tools only", elsewhere, slices.Concat(accepted, acceptedInTests)},
	} {
		want := map[string]string{}
		for path, dir := range part.modules {
			want[path] = licenseIn(t, dir)
			for license := range strings.SplitSeq(want[path], ", ") {
				assert.That(t, slices.Contains(part.accepted, license),
					"%s has the license %q, which nobody has accepted", path, license)
			}
		}
		assert.Equal(t, listed(t, page, part.section), want, "%s (-modules +licenses.md)", part.section)
	}
}

// The license file of the fonts covers each of them. OFL-1.1 allows a program to embed them.
func TestLicenses_OfFontsAreListedAndAccepted(t *testing.T) {
	t.Parallel()
	license := licenseIn(t, "playground/fonts")
	assert.That(t, license == "OFL-1.1", "the fonts have the license %q, which nobody has accepted", license)
	want := map[string]string{}
	for _, family := range regexp.MustCompile(`font-family: "([^"]+)"`).FindAllStringSubmatch(string(read(t, "playground/css/fonts.css")), -1) {
		want[family[1]] = "OFL-1.1"
	}
	assert.Equal(t, listed(t, string(read(t, "licenses.md")), "Fonts"), want, "fonts (-fonts.css +licenses.md)")
}

// unnamedInPeers are packages of peers whose package.json names no license.
var unnamedInPeers = []string{
	"@medusajs/admin-bundler", "@medusajs/admin-shared", "@medusajs/admin-vite-plugin",
	"busboy", "connect-dynamodb", "limiter", "parent-require", "streamsearch",
}

// The other modules of the repository, and the npm packages, are not part of anything that is given
// away, and most of them are not on the page. `make peers` runs Vendure and Medusa as processes of
// their own.
func TestLicenses_OfWhatIsNotGivenAwayAreAccepted(t *testing.T) {
	t.Parallel()
	allowed := slices.Concat(accepted, acceptedInTests)
	inPeers := slices.Concat(allowed, []string{
		"(MIT AND BSD-3-Clause)", "GPL-3.0-or-later",
		"SEE LICENSE IN LICENSE", // Medusa: MIT, except its enterprise features
	})
	check := func(of, path, licenses string, allowed []string) {
		for license := range strings.SplitSeq(licenses, ", ") {
			assert.That(t, slices.Contains(allowed, license),
				"%s of %s has the license %q, which nobody has accepted", path, of, license)
		}
	}
	for root, least := range map[string]int{"../cmd/bench": 10, "../deploy/check": 10, "../deploy/clients": 10} {
		packages := []string{"-test", "./..."}
		if root == "../deploy/clients" {
			packages = append(packages, "tool")
		}
		for path, dir := range modulesOf(t, root, least, packages...) {
			if !strings.HasPrefix(path+"/", "commerce/") { // the repository itself
				check(root, path, licenseIn(t, dir), allowed)
			}
		}
	}
	inTests := map[string]string{}
	for _, folder := range lockFiles(t) {
		for path, license := range lockedPackages(t, folder) {
			switch isPeer := strings.HasSuffix(folder, "/vendure") || strings.HasSuffix(folder, "/medusa"); {
			case !isPeer:
				check(folder, path, license, allowed)
			case license != "" || !slices.Contains(unnamedInPeers, path):
				check(folder, path, license, inPeers)
			}
			if strings.HasPrefix(folder, "../docs/e2e/") {
				inTests[path] = license
			}
		}
	}
	assert.Equal(t, listed(t, string(read(t, "licenses.md")), "npm packages"), inTests,
		"npm packages (-lock files +licenses.md)")
}

func lockFiles(t *testing.T) (folders []string) {
	t.Helper()
	for _, file := range filesNamed(t, "package-lock.json") {
		folders = append(folders, filepath.ToSlash(filepath.Dir(file)))
	}
	assert.Require(t, len(folders) >= 7, "found only %d lock files: this test does not see all", len(folders))
	return folders
}

// filesNamed returns the project's files that have one of these names, such as "*.yaml".
func filesNamed(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, root := range []string{"../auth", "../cart", "../cmd", "../deploy", "../docs", "../subscriptions"} {
		assert.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			if err == nil && slices.ContainsFunc(patterns, func(p string) bool { ok, _ := filepath.Match(p, d.Name()); return ok }) {
				files = append(files, path)
			}
			return err
		}))
	}
	return files
}

// lockedPackages returns the licenses of the npm packages that a folder's lock file names.
func lockedPackages(t *testing.T, folder string) map[string]string {
	t.Helper()
	var lock struct {
		Packages map[string]struct{ License string }
	}
	assert.NoError(t, json.Unmarshal(read(t, folder+"/package-lock.json"), &lock))
	delete(lock.Packages, "") // the test itself
	licenses := map[string]string{}
	for path, p := range lock.Packages {
		licenses[strings.TrimPrefix(path, "node_modules/")] = p.License
	}
	return licenses
}

// modulesOf returns the folders of the modules that packages of the module in root depend on,
// by path. There must be at least some modules, so that no test passes because it sees none.
func modulesOf(t *testing.T, root string, least int, packages ...string) map[string]string {
	t.Helper()
	const each = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}"
	list := exec.Command("go", append([]string{"list", "-tags=nomsgpack", "-deps", "-f", each}, packages...)...) // the Makefile's tag
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	assert.Require(t, err == nil, "go list: %v", err)
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			dirs[path] = dir
		}
	}
	assert.Require(t, len(dirs) >= least, "found only %d modules: this test does not see all", len(dirs))
	return dirs
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)

func licenseIn(t *testing.T, dir string) string {
	t.Helper()
	files := assert.Must(os.ReadDir(dir))(t)
	found := map[string]bool{}
	for _, f := range files {
		if f.IsDir() || !licenseFile.MatchString(f.Name()) {
			continue
		}
		for _, match := range licensecheck.Scan(read(t, filepath.Join(dir, f.Name()))).Match {
			if !match.IsURL {
				found[match.ID] = true
			}
		}
	}
	if len(found) == 0 {
		return "unknown"
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

// listed returns the licenses that a section of licenses.md lists, by the names of what has them.
func listed(t *testing.T, page, section string) map[string]string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n## "+section+"\n")
	assert.Require(t, found, "licenses.md has no section %q", section)
	rest, _, _ = strings.Cut(rest, "\n## ")
	names := map[string]string{}
	for _, group := range regexp.MustCompile("(?m)^- ([^:`\n]+):((?:\n  `[^`]+`,?)+)$").FindAllStringSubmatch(rest, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(group[2], -1) {
			other, twice := names[name[1]]
			assert.That(t, !twice, "licenses.md lists %s twice, with %s and %s", name[1], other, group[1])
			names[name[1]] = group[1]
		}
	}
	return names
}
