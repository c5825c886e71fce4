package clients_test

import (
	"os"
	"path/filepath"
	"testing"
)

// strict are the options with which the generated code and its use must compile.
var strict = []string{
	"--noEmit", "--strict", "--skipLibCheck", "false", "--target", "es2022", "--lib", "es2022,dom,dom.iterable",
	"--module", "esnext", "--moduleResolution", "bundler",
}

func TestClient_OfOpenAPITypescriptCompiles(t *testing.T) {
	t.Parallel()
	generate, dir := npm(t, "openapi-typescript")
	run(t, dir, generate, absolute(t, document), "--output", "schema.d.ts")
	compile(t, dir, "types.ts")
}

func TestClient_OfHeyAPICompiles(t *testing.T) {
	t.Parallel()
	generate, dir := npm(t, "openapi-ts")
	run(t, dir, generate, "--input", absolute(t, document), "--output", "client", "--no-log-file")
	compile(t, dir, "fetch.ts")
}

// Some parsers refuse documents with many aliases, as an attack on their memory: this one
// more than 100, counted with those inside of what an alias stands for.
func TestDocument_ParsesWithTheDefaultsOfYAML(t *testing.T) {
	t.Parallel()
	_, dir := npm(t, "yaml")
	run(t, dir, "node", "-e", `require("yaml").parse(require("fs").readFileSync(process.argv[1], "utf8"))`, absolute(t, document))
}

// compile type-checks a program of testdata that uses the code in dir.
func compile(t *testing.T, dir, program string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", program))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, program), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	tsc, _ := npm(t, "tsc")
	run(t, dir, tsc, append(strict, program)...)
}
