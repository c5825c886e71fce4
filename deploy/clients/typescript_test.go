package clients_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// strict are the options with which the generated code and its use must compile.
var strict = []string{
	"--noEmit", "--strict", "--skipLibCheck", "false", "--target", "es2022", "--lib", "es2022,dom,dom.iterable",
	"--module", "esnext", "--moduleResolution", "bundler",
}

func TestClient_OfOpenAPITypescriptCompilesAndRefusesWrongCode(t *testing.T) {
	t.Parallel()
	generate, dir := npm(t, "openapi-typescript")
	run(t, dir, generate, absolute(t, document), "--output", "schema.d.ts")
	compile(t, dir, "types.ts")
}

func TestClient_OfHeyAPICompilesAndRefusesWrongCode(t *testing.T) {
	t.Parallel()
	generate, dir := npm(t, "openapi-ts")
	run(t, dir, generate, "--input", absolute(t, document), "--output", "client", "--no-log-file")
	compile(t, dir, "fetch.ts")

	// A type with the name of a global, such as Date, hides it in a program that imports the type.
	types, err := os.ReadFile(filepath.Join(dir, "client/types.gen.ts"))
	var names strings.Builder
	for _, name := range regexp.MustCompile(`(?m)^export type (\w+)`).FindAllSubmatch(types, -1) {
		fmt.Fprintf(&names, "// @ts-expect-error: %s is no global\nexport type Global%[1]s = typeof globalThis.%[1]s;\n", name[1])
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "names.ts"), []byte(names.String()), 0o666)
	}
	if err != nil || names.Len() == 0 {
		t.Fatalf("no names of types: %v", err)
	}
	check(t, dir, "names.ts")
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
	check(t, dir, program)
}

// check type-checks a program in dir.
func check(t *testing.T, dir, program string) {
	t.Helper()
	tsc, _ := npm(t, "tsc")
	run(t, dir, tsc, append(strict, program)...)
}
