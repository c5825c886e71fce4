package docs_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// The viewer in the repository is what reference/update.sh downloads.
func TestReference_HasTheVersionOfItsScript(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`(?m)^version=(\S+)$`).FindSubmatch(read(t, "reference/update.sh"))
	if version == nil {
		t.Fatal("update.sh names no version")
	}
	stored := read(t, "reference/viewer.js.gz")
	if len(stored) > 2<<20 {
		t.Errorf("the viewer adds %d bytes to the binary", len(stored))
	}
	r, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		t.Fatal(err)
	}
	viewer, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := append([]byte("@scalar/api-reference@"), version[1]...); !bytes.Contains(viewer, want) {
		t.Errorf("viewer.js is not %s: run update.sh", want)
	}
	want := map[string]string{"@scalar/api-reference": licenseIn(t, "reference")}
	if diff := gocmp.Diff(want, listed(t, string(read(t, "licenses.md")), "The API reference")); diff != "" {
		t.Errorf("licenses (-reference/LICENSE.txt +licenses.md):\n%s", diff)
	}
}
