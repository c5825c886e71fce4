package main_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "commerce"
	root   = "../.." // of the repository, from here
)

// leaves are what any domain package may use.
var leaves = []string{"auth/locale", "auth/store", "auth/problem", "auth/lastknown", "cart/money", "cart/period"}

// imports is the tree: which of our packages each one may import, in code that
// is not a test. The domain packages know nothing of HTTP servers, commands or
// each other's storage; what is below cmd is wired there and nowhere else.
var imports = map[string][]string{
	"auth":           {"auth/locale", "auth/store", "auth/problem", "auth/lastknown", "cart/money"},
	"auth/lastknown": nil,
	"auth/locale":    nil,
	"auth/problem":   {"auth/locale"},
	"auth/store":     {"auth/locale"},

	"cart":          append([]string{"auth"}, leaves...),
	"cart/money":    {"auth/locale"},
	"cart/period":   {"auth/locale"},
	"cart/wire":     {"auth/locale", "auth/problem", "cart/money"},
	"cart/catalog":  append([]string{"cart"}, leaves...),
	"cart/carttest": nil,

	"subscriptions": append([]string{"auth", "cart/wire"}, leaves...),

	"docs": nil,

	"deploy/migrations":    nil,
	"deploy/connect":       nil,
	"deploy/sample":        append([]string{"auth", "cart", "cart/catalog", "subscriptions"}, leaves...),
	"deploy/ephemeral":     {"deploy/connect", "deploy/migrations"},
	"deploy/ephemeral/run": {"deploy/ephemeral"},
}

// Anything below cmd may import everything: wiring is what it is for. So may a
// test import what boots servers or fills them.
const wiring = "cmd"

var forTests = []string{"cart/carttest", "deploy/connect", "deploy/ephemeral", "deploy/migrations", "deploy/sample"}

// vague names say nothing of what a package is about.
var vague = []string{"base", "common", "helper", "helpers", "lib", "misc", "model", "models", "shared", "types", "util", "utils"}

func TestImports_GoOneWay(t *testing.T) {
	t.Parallel()
	files := goFiles(t)
	if len(files) < 10 {
		t.Fatalf("%d Go files below %s: not the repository's root", len(files), root)
	}
	for _, file := range files {
		pkg := path.Dir(file)
		if pkg == wiring || strings.HasPrefix(pkg, wiring+"/") {
			continue
		}
		allowed, known := imports[pkg]
		if !known {
			t.Errorf("%s: package %s has no place in the tree yet: give it one in the table of this test", file, pkg)
			continue
		}
		if strings.HasSuffix(file, "_test.go") {
			allowed = append(slices.Clone(allowed), append(forTests, pkg)...)
		}
		for _, imported := range ours(t, file) {
			if !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s; %s may import only %v of ours", file, imported, pkg, allowed)
			}
		}
	}
}

func TestPackages_HaveNamesThatSaySomething(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t) {
		if name := path.Base(path.Dir(file)); slices.Contains(vague, name) {
			t.Errorf("%s: a package named %q can hold anything; name it after what it does", file, name)
		}
	}
}

// goFiles lists the repository's Go files by their paths from its root.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || len(entry.Name()) > 2 && entry.Name()[0] == '.') {
			return filepath.SkipDir
		}
		if !entry.IsDir() && path.Ext(name) == ".go" {
			name, err = filepath.Rel(root, name)
			files = append(files, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// ours are the packages of this module that file imports, by their paths from
// the module's root. Build tags play no part.
func ours(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if name, of := strings.CutPrefix(name, module+"/"); of {
			found = append(found, name)
		}
	}
	return found
}
