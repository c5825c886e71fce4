// Package clients_test generates clients from docs/openapi.yaml, and compiles them. It also runs
// published clients of agents. It is a module of its own, so that the service depends on none of them.
package clients_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/oapi-codegen/runtime" // the generated code needs it
)

const document = "../../docs/openapi.yaml"

func absolute(t *testing.T, file string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	noError(t, err)
	return path
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func copied(t *testing.T, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", from))
	noError(t, err)
	noError(t, os.WriteFile(to, text, 0o666))
	return string(text)
}

func run(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(program), args, err, said)
	}
}

// packages is the folder in which the pinned npm packages of testdata/npm are installed.
// The first test that needs them installs them for all.
var packages struct {
	install sync.Once
	dir     string
}

func TestMain(m *testing.M) {
	status := m.Run()
	for _, dir := range []string{packages.dir, demo.dir} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	os.Exit(status)
}

// npm returns a program of the packages, and a new folder where TypeScript finds its libraries.
func npm(t *testing.T, program string) (path, dir string) {
	t.Helper()
	packages.install.Do(func() {
		if _, err := exec.LookPath("npm"); err != nil {
			t.Fatal("npm is not installed (sh deploy/ephemeral/install.sh)")
		}
		var err error
		packages.dir, err = os.MkdirTemp("", "commerce-clients-")
		noError(t, err)
		noError(t, os.CopyFS(packages.dir, os.DirFS("testdata/npm")))
		run(t, packages.dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	})
	dir = filepath.Join(packages.dir, t.Name())
	noError(t, os.MkdirAll(dir, 0o777))
	return filepath.Join(packages.dir, "node_modules/.bin", program), dir
}

// testdata/redocly.yaml lists the rules, and why some are off.
func TestDocument_LintsWithoutWarnings(t *testing.T) {
	t.Parallel()
	redocly, dir := npm(t, "redocly")
	run(t, dir, redocly, "lint", "--max-problems=100", "--format=stylish", "--config="+absolute(t, "testdata/redocly.yaml"), absolute(t, document))
}

// The generated client reads an example of the document. Wrong code does not compile.
func TestClient_OfOAPICodegenReadsACartAndRefusesWrongCode(t *testing.T) {
	t.Parallel()
	dir := "testdata/generated"
	noError(t, os.MkdirAll(dir, 0o777))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	run(t, ".", "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "generated", "-o", filepath.Join(dir, "client.go"), document)
	copied(t, "use.go.txt", filepath.Join(dir, "client_test.go"))
	run(t, ".", "go", "test", "./"+dir)

	wrong := strings.TrimSuffix(copied(t, "wrong.go.txt", filepath.Join(dir, "wrong.go")), "}\n") + goCalls(t) + "}\n"
	noError(t, os.WriteFile(filepath.Join(dir, "wrong.go"), []byte(wrong), 0o666))
	said, _ := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "./"+dir).CombinedOutput()
	for i, line := range strings.Split(wrong, "\n")[1:] {
		want, at := "", fmt.Sprintf("wrong.go:%d:", i+2)
		if _, comment, found := strings.Cut(line, " // "); found {
			want = comment
		}
		if got := regexp.MustCompile(regexp.QuoteMeta(at) + ".*").FindString(string(said)); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s\ncompiler: %q, want %q", line, got, want)
		}
	}
}

// strict are the options with which the generated code and its use must compile.
var strict = []string{
	"--noEmit", "--strict", "--skipLibCheck", "false", "--target", "es2022", "--lib", "es2022,dom,dom.iterable",
	"--module", "esnext", "--moduleResolution", "bundler",
}

// The types of docs/storefront.js, as deploy/release.sh makes them. The script itself fits those of the document.
func TestClient_OfTheStorefrontCompilesAndRefusesWrongCode(t *testing.T) {
	t.Parallel()
	generate, dir := npm(t, "openapi-typescript")
	tsc, _ := npm(t, "tsc")
	run(t, dir, generate, absolute(t, document), "--output", "openapi.d.ts")
	for from, to := range map[string]string{"../../../docs/storefront.js": "storefront.js", "npm/types.json": "types.json"} {
		copied(t, from, filepath.Join(dir, to))
	}
	run(t, dir, tsc, "--project", "types.json")
	minify, _ := npm(t, "esbuild")
	run(t, dir, minify, "--minify", "--format=esm", "--outfile=small.js", "storefront.js")
	if small, err := os.ReadFile(filepath.Join(dir, "small.js")); err != nil || len(small) > 8<<10 {
		t.Errorf("minified, storefront.js has %d bytes (%v)", len(small), err)
	}
	noError(t, os.Remove(filepath.Join(dir, "storefront.js")))
	copied(t, "shopper.ts", filepath.Join(dir, "shopper.ts"))
	check(t, dir, "shopper.ts")
}

// Some parsers refuse documents with many aliases, as an attack on their memory: this one
// more than 100, counted with those inside of what an alias stands for.
func TestDocument_ParsesWithTheDefaultsOfYAML(t *testing.T) {
	t.Parallel()
	_, dir := npm(t, "yaml")
	run(t, dir, "node", "-e", `require("yaml").parse(require("fs").readFileSync(process.argv[1], "utf8"))`, absolute(t, document))
}

// check type-checks programs in dir.
func check(t *testing.T, dir string, programs ...string) {
	t.Helper()
	tsc, _ := npm(t, "tsc")
	run(t, dir, tsc, append(strict, programs...)...)
}
