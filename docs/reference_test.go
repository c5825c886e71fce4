package docs_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"commerce/deploy/assert"
)

// The viewer in the repository is what reference/update.sh downloads.
func TestReference_HasTheViewerOfItsScript(t *testing.T) {
	t.Parallel()
	digest := regexp.MustCompile(`(?m)^digest=(\S+)`).FindSubmatch(read(t, "reference/update.sh"))
	assert.Require(t, digest != nil, "update.sh names no digest")
	stored := read(t, "reference/viewer.js.gz")
	assert.That(t, len(stored) <= 2<<20, "the viewer adds %d bytes to the binary", len(stored))
	r := assert.Must(gzip.NewReader(bytes.NewReader(stored)))(t)
	viewer := assert.Must(io.ReadAll(r))(t)
	assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256(viewer)), string(digest[1]), "digest of viewer.js; run update.sh")
	want := map[string]string{"@scalar/api-reference": licenseIn(t, "reference")}
	assert.Equal(t, gocmp.Diff(want, listed(t, string(read(t, "licenses.md")), "The API reference")), "",
		"licenses (-reference/LICENSE.txt +licenses.md):\n")
}
