package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

const (
	module = "commerce"
	root   = "../.." // of the repository, from here
)

// imports lists which of our packages each package may import, except in tests. Packages
// below cmd connect the others, and may import everything.
//
//	handover, undo, share, live, ucp → carthttp → service → redisstore → layout → transfer, price → cart → locale, store, problem, money, period
//	feed, history, figures → subscriptionshttp, postgres → subscriptions → locale, problem, money, period
var imports = map[string][]string{
	"auth":           {"auth/bounded", "auth/cause", "auth/lastknown", "auth/limit", "auth/locale", "auth/pgread", "auth/problem", "auth/store", "auth/timing"},
	"auth/bounded":   nil,
	"auth/cause":     nil,
	"auth/lastknown": {"auth/bounded", "auth/timing"},
	"auth/locale":    nil,
	"auth/pgread":    nil,
	"auth/problem":   {"auth/locale"},
	"auth/limit":     {"auth/bounded", "auth/problem", "auth/script"},
	"auth/script":    nil,
	"auth/sealed":    nil,
	"auth/store":     {"auth/locale"},
	"auth/timing":    nil,

	"cart":                   {"auth/locale", "auth/problem", "cart/money", "cart/period"},
	"cart/price":             {"auth/locale", "auth/problem", "auth/store", "cart", "cart/money"},
	"cart/redisstore":        {"auth", "auth/bounded", "auth/cause", "auth/problem", "auth/script", "auth/timing", "cart", "cart/money", "cart/redisstore/layout", "cart/transfer"},
	"cart/redisstore/layout": {"auth/problem", "cart", "cart/money", "cart/transfer"},
	"cart/transfer":          {"auth/problem", "cart", "cart/money"},
	"cart/service":           {"auth", "auth/bounded", "auth/locale", "auth/sealed", "auth/store", "auth/problem", "auth/limit", "auth/timing", "cart", "cart/price", "cart/redisstore", "cart/transfer"},
	"cart/carthttp": {
		"auth", "auth/bounded", "auth/locale", "auth/store", "auth/problem",
		"cart", "cart/price", "cart/service", "cart/wire", "cart/money",
	},
	"cart/catalog":  {"auth/cause", "auth/lastknown", "auth/locale", "auth/pgread", "cart", "cart/money", "cart/period", "cart/price"},
	"cart/money":    {"auth/locale"},
	"cart/period":   {"auth/locale"},
	"cart/wire":     {"auth/locale", "auth/problem", "cart/money"},
	"cart/carttest": {"auth/locale", "cart", "cart/money"},

	"cart/handover": {"auth", "auth/locale", "auth/problem", "cart", "cart/carthttp", "cart/price", "cart/redisstore", "cart/service", "cart/transfer", "cart/wire"},
	"cart/undo":     {"auth", "auth/locale", "auth/problem", "cart", "cart/carthttp", "cart/redisstore", "cart/service", "cart/transfer", "cart/wire"},

	"cart/live":  {"auth/cause", "auth/limit", "auth/locale", "auth/problem", "cart", "cart/carthttp", "cart/redisstore", "cart/service", "cart/wire"},
	"cart/share": {"auth", "auth/limit", "auth/locale", "auth/problem", "cart", "cart/carthttp", "cart/price", "cart/redisstore", "cart/redisstore/layout", "cart/service", "cart/wire"},

	"cart/ucp": {
		"auth", "auth/locale", "auth/problem", "auth/store",
		"cart", "cart/handover", "cart/money", "cart/price", "cart/service", "cart/ucp/agent", "cart/ucp/platform", "cart/wire",
	},
	"cart/ucp/agent":    {"auth", "auth/locale", "auth/problem", "auth/store", "cart", "cart/handover", "cart/price", "cart/redisstore", "cart/service"},
	"cart/ucp/platform": {"auth", "auth/bounded", "auth/cause", "auth/locale", "auth/problem", "auth/timing"},

	"subscriptions": {"auth/locale", "auth/problem", "cart/money", "cart/period"},
	"subscriptions/postgres": {
		"auth/cause", "auth/limit", "auth/locale", "auth/pgread", "auth/problem", "auth/timing", "subscriptions",
	},
	"subscriptions/subscriptionshttp": {
		"auth", "auth/limit", "auth/locale", "auth/store", "auth/problem", "cart/money", "cart/wire", "subscriptions",
	},

	"subscriptions/feed": {
		"auth/limit", "auth/locale", "auth/problem", "cart/wire",
		"subscriptions", "subscriptions/formats", "subscriptions/postgres", "subscriptions/recorded", "subscriptions/subscriptionshttp",
	},
	"subscriptions/feed/follower": {"auth/locale", "subscriptions", "subscriptions/feed", "subscriptions/recorded", "subscriptions/subscriptionshttp"}, // only tests
	"subscriptions/history": {
		"auth/locale", "cart/money", "cart/period", "cart/wire",
		"auth/problem", "subscriptions", "subscriptions/postgres", "subscriptions/recorded", "subscriptions/subscriptionshttp",
	},
	"subscriptions/figures": {
		"auth/bounded", "auth/limit", "auth/locale", "auth/pgread", "auth/problem", "auth/timing", "cart/money", "cart/period", "cart/wire",
		"subscriptions", "subscriptions/formats", "subscriptions/history", "subscriptions/postgres", "subscriptions/recorded", "subscriptions/subscriptionshttp",
	},
	"subscriptions/replicas": {"auth/cause"},
	"subscriptions/formats":  {"cart/money"},
	"subscriptions/recorded": {
		"auth/limit", "auth/locale", "auth/problem", "cart/wire", "subscriptions", "subscriptions/postgres", "subscriptions/subscriptionshttp",
	},
	"subscriptions/suite": {
		"auth", "auth/locale", "auth/problem", "auth/store", "cart/money", "cart/period", "cart/wire",
		"deploy/assert", "deploy/connect", "deploy/ephemeral", "deploy/migrations", "deploy/sample",
		"subscriptions", "subscriptions/feed", "subscriptions/figures", "subscriptions/formats", "subscriptions/history", "subscriptions/postgres", "subscriptions/recorded", "subscriptions/replicas", "subscriptions/subscriptionshttp",
	},
	"subscriptions/suite/plans": {"deploy/assert", "deploy/ephemeral"},

	"docs":     nil,
	"docs/e2e": {"auth/locale", "cart", "cart/money", "docs"}, // tests only

	"deploy/check":            nil, // this and the next three are in modules of their own
	"deploy/check/monitoring": nil,
	"deploy/check/mutants":    nil,
	"deploy/clients":          nil,
	"deploy/migrations":       nil,
	"deploy/connect":          {"auth/cause"},
	"deploy/heap":             nil,
	"deploy/assert":           nil,
	"deploy/inspect":          {"cart/redisstore", "deploy/connect", "deploy/migrations"},
	"deploy/sample":           {"auth/locale", "auth/store", "cart", "cart/money", "cart/period", "cart/price", "subscriptions", "subscriptions/history"},
	"deploy/ephemeral":        {"deploy/connect", "deploy/migrations"},
	"deploy/ephemeral/run":    {"deploy/ephemeral"},
}

// Packages below cmd may import everything, because they connect the others.
const wiring = "cmd"

// What tests may import beyond their package and its imports: packages that start servers
// or fill them with data, packages with which the tests of carts in Redis and those of
// subscriptions drive whole requests.
var forTests = []string{
	"auth", "auth/limit", "auth/sealed", "auth/store", "cart/handover", "cart/live", "cart/money", "cart/price", "cart/service", "cart/share", "cart/transfer", "cart/ucp/agent", "cart/undo", "cart/carttest", "cart/wire", "deploy/assert", "deploy/connect", "deploy/ephemeral",
	"deploy/migrations", "deploy/sample", "subscriptions/figures", "subscriptions/formats", "subscriptions/postgres", "subscriptions/suite", "subscriptions/suite/plans",
}

// pure packages take and return values: neither they nor what they import use any of impure.
var (
	pure   = []string{"cart", "cart/price", "cart/redisstore/layout", "cart/transfer", "auth/locale", "auth/store", "auth/problem", "cart/money", "cart/period", "subscriptions"}
	impure = []string{"net/http", "log/slog", "github.com/gin-gonic/gin", "github.com/redis/go-redis", "github.com/jackc/pgx"}
)

// vague names do not say what a package does.
var vague = []string{"base", "common", "helper", "helpers", "lib", "misc", "model", "models", "shared", "types", "util", "utils"}

func TestImports_GoOneWay(t *testing.T) {
	t.Parallel()
	files := goFiles(t)
	assert.Require(t, len(files) >= 10, "%d Go files below %s: not the repository's root", len(files), root)
	for _, file := range files {
		pkg := path.Dir(file)
		if isBelow(pkg, []string{wiring}) {
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
		for _, imported := range importsOf(t, file) {
			name, ours := strings.CutPrefix(imported, module+"/")
			assert.That(t, !ours || slices.Contains(allowed, name),
				"%s imports %s; %s may import only %v of ours", file, name, pkg, allowed)
		}
	}
}

// A shop may never use what is beside the core of the cart, so nothing in the core needs it.
func TestImports_OfTheCartsCoreAreNotBesideIt(t *testing.T) {
	t.Parallel()
	beside := []string{"cart/handover", "cart/live", "cart/share", "cart/ucp", "cart/undo"}
	for pkg, allowed := range imports {
		if isBelow(pkg, []string{"cart"}) && !isBelow(pkg, beside) {
			for _, imported := range allowed {
				assert.That(t, !isBelow(imported, beside), "%s may import %s", pkg, imported)
			}
		}
	}
}

func TestImports_OfPurePackagesArePure(t *testing.T) {
	t.Parallel()
	for _, pkg := range pure {
		for _, dep := range depsOf(t, pkg) {
			assert.That(t, !isBelow(dep, impure), "%s depends on %s", pkg, dep)
		}
	}
}

// The rules of the cart need languages, Unicode and currencies, and nothing else of others.
func TestImports_OfTheCartsRulesAreFew(t *testing.T) {
	t.Parallel()
	for _, dep := range append(depsOf(t, "cart/price"), depsOf(t, "cart/transfer")...) {
		host, _, _ := strings.Cut(dep, "/")
		assert.That(t, !strings.Contains(host, ".") || isBelow(dep, []string{"golang.org/x/text", "github.com/bojanz/currency", "github.com/cockroachdb/apd"}),
			"the cart's rules depend on %s", dep)
	}
}

// depsOf returns a package of ours and all that it imports, directly or not.
func depsOf(t *testing.T, pkg string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+pkg)
	list.Dir = root
	deps := strings.Fields(string(assert.Must(list.Output())(t)))
	assert.Require(t, slices.Contains(deps, module+"/"+pkg), "%s is not among its own dependencies: %q", pkg, deps)
	return deps
}

// isBelow reports whether a package is one of others, or in a folder of one.
func isBelow(pkg string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool { return strings.HasPrefix(pkg+"/", other+"/") })
}

func TestPackages_HaveNamesThatSaySomething(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t) {
		assert.That(t, !slices.Contains(vague, path.Base(path.Dir(file))), "%s: name it after what it does", file)
	}
}

// goFiles returns the paths of all Go files, relative to the root of the repository.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	assert.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
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
	}))
	return files
}

// importsOf returns what file imports. Build tags play no part.
func importsOf(t *testing.T, file string) []string {
	t.Helper()
	parsed := assert.Must(parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly))(t)
	var found []string
	for _, spec := range parsed.Imports {
		found = append(found, assert.Must(strconv.Unquote(spec.Path.Value))(t))
	}
	return found
}

// The picture of docs/design.md is what the code has: packages, an arrow for each import that
// no path of arrows implies, and a dotted one for each kind of server that a package calls. A
// sentence below it has the other packages of the program.
func TestArchitecture_ShowsThePackagesAndTheirImports(t *testing.T) {
	t.Parallel()
	page := source(t, "docs/design.md")
	picture := codeUnder(t, page, "The packages and the servers", "mermaid")[0]
	made, called := importsOfPackages(t)
	program := append(reachable(made, "cmd/commerce"), "cmd/commerce")

	boxes := map[string]string{} // packages, and servers as Redis or Postgres, by their id in the picture
	var drawn, listed []string
	for _, box := range regexp.MustCompile(`(?m)^ *(\w+)\["([\w/]+)(?:<br>[^"]*)?"\]$`).FindAllStringSubmatch(picture, -1) {
		boxes[box[1]] = box[2]
		drawn = append(drawn, box[2])
	}
	servers := regexp.MustCompile(`(\w+)\[\("[^"]*(Redis|Postgres)[^"]*"\)\]`)
	for _, box := range servers.FindAllStringSubmatch(picture, -1) {
		boxes[box[1]] = box[2]
	}
	var outside []string
	for _, box := range servers.FindAllStringSubmatch(codeUnder(t, source(t, "README.md"), "Merchant Commerce Service", "mermaid")[0], -1) {
		outside = append(outside, box[2])
	}
	assert.Equal(t, slices.Sorted(slices.Values(outside)), slices.Compact(slices.Sorted(slices.Values(called["cmd/commerce"]))),
		"the servers of the README's picture, compared with those to which the program connects")
	_, sentence, _ := strings.Cut(page, "\nThe picture leaves out the packages ")
	sentence, _, _ = strings.Cut(sentence, ". ")
	for _, name := range regexp.MustCompile("`([\\w/]+)`").FindAllStringSubmatch(sentence, -1) {
		listed = append(listed, name[1])
	}
	assert.Equal(t, slices.Sorted(slices.Values(append(listed, drawn...))), slices.Sorted(slices.Values(program)),
		"the packages of the page, compared with those of the program")

	arrows, calls := map[string][]string{}, map[string]bool{}
	dotted := regexp.MustCompile(`^(\w+) -\.(?: "[^"]+" \.)?-> (\w+)$`)
	for line := range strings.Lines(picture) {
		line = strings.TrimSpace(line)
		if call := dotted.FindStringSubmatch(line); call != nil {
			calls[boxes[call[1]]+" calls "+boxes[call[2]]] = true
			continue
		}
		chain := strings.Split(line, " --> ")
		for i, id := range chain[1:] {
			from, to := boxes[chain[i]], boxes[id]
			assert.That(t, slices.Contains(made[from], to), "%s: the package %q does not import %q", line, from, to)
			arrows[from] = append(arrows[from], to)
		}
		assert.That(t, len(chain) > 1 || !strings.Contains(line, "->"), "this test does not read the arrow %s", line)
	}
	for _, from := range drawn {
		for _, to := range drawn {
			assert.That(t, !slices.Contains(made[from], to) || slices.Contains(reachable(arrows, from), to), "no arrow leads from %s to %s, which it imports", from, to)
		}
	}
	want := map[string]bool{}
	for _, pkg := range program {
		caller := pkg // a listed package calls servers for the drawn one that it is below
		for !slices.Contains(drawn, caller) && caller != "." {
			caller = path.Dir(caller)
		}
		for _, server := range called[pkg] {
			if !isBelow(pkg, []string{wiring, "deploy"}) { // which open connections and watch them
				want[caller+" calls "+server] = true
			}
		}
	}
	assert.Equal(t, calls, want, "the dotted arrows, compared with the imports of servers' clients")
}

// importsOfPackages returns which of our packages each package imports, and which servers' clients,
// except in tests.
func importsOfPackages(t *testing.T) (ours, servers map[string][]string) {
	t.Helper()
	ours, servers = map[string][]string{}, map[string][]string{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		pkg := path.Dir(file)
		for _, imported := range importsOf(t, file) {
			if name, is := strings.CutPrefix(imported, module+"/"); is {
				ours[pkg] = append(ours[pkg], name)
			}
			for server, client := range map[string]string{"Redis": "github.com/redis/go-redis", "Postgres": "github.com/jackc/pgx"} {
				if isBelow(imported, []string{client}) {
					servers[pkg] = append(servers[pkg], server)
				}
			}
		}
	}
	return ours, servers
}

// reachable returns what a graph's arrows lead to from one of its points.
func reachable(arrows map[string][]string, from string) (reached []string) {
	todo := []string{from}
	for len(todo) > 0 {
		for _, to := range arrows[todo[0]] {
			if !slices.Contains(reached, to) {
				reached, todo = append(reached, to), append(todo, to)
			}
		}
		todo = todo[1:]
	}
	return reached
}

// The pages name only targets of make that exist, also where no test runs them.
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
	slow(t)
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
