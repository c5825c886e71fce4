package docs_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"commerce/deploy/assert"
)

// The viewer in the repository is what reference/update.sh downloads.
func TestReference_HasTheVersionOfItsScript(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`(?m)^version=(\S+)$`).FindSubmatch(read(t, "reference/update.sh"))
	assert.Require(t, version != nil, "update.sh names no version")
	stored := read(t, "reference/viewer.js.gz")
	assert.That(t, len(stored) <= 2<<20, "the viewer adds %d bytes to the binary", len(stored))
	r := assert.Must(gzip.NewReader(bytes.NewReader(stored)))(t)
	viewer := assert.Must(io.ReadAll(r))(t)
	if want := append([]byte("@scalar/api-reference@"), version[1]...); !bytes.Contains(viewer, want) {
		t.Errorf("viewer.js is not %s: run update.sh", want)
	}
	want := map[string]string{"@scalar/api-reference": licenseIn(t, "reference")}
	assert.Equal(t, gocmp.Diff(want, listed(t, string(read(t, "licenses.md")), "The API reference")), "",
		"licenses (-reference/LICENSE.txt +licenses.md):\n")
}
