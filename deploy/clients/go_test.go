package clients_test

import (
	"os"
	"path/filepath"
	"testing"

	_ "github.com/oapi-codegen/runtime" // the generated code needs it
)

// The generated client calls a server that answers with an example of the document.
func TestClient_OfOAPICodegenCompilesAndReadsACart(t *testing.T) {
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
}
