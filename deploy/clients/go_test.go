package clients_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/oapi-codegen/runtime" // the generated code needs it
)

// The generated client calls a server that answers with an example of the document. Wrong code
// does not compile.
func TestClient_OfOAPICodegenReadsACartAndRefusesWrongCode(t *testing.T) {
	t.Parallel()
	dir := "testdata/generated"
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	run(t, ".", "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "generated", "-o", filepath.Join(dir, "client.go"), document)
	text, err := os.ReadFile("testdata/use.go.txt")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "client_test.go"), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	run(t, ".", "go", "test", "./"+dir)

	wrong, err := os.ReadFile("testdata/wrong.go.txt")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "wrong.go"), wrong, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	said, _ := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "./"+dir).CombinedOutput()
	for i, line := range strings.Split(string(wrong), "\n")[1:] {
		want, at := "", fmt.Sprintf("wrong.go:%d:", i+2)
		if _, comment, found := strings.Cut(line, " // "); found {
			want = comment
		}
		if got := regexp.MustCompile(regexp.QuoteMeta(at) + ".*").FindString(string(said)); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s\ncompiler: %q, want %q", line, got, want)
		}
	}
}
