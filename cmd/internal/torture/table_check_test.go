package torture

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

func TestTable_KeepsRowsThatWereNotTestedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, run := range []*table{
		{rows: []row{{Number: 2, Promise: "b", Kept: true, Figures: []figure{{Name: "tried", Value: 1_000_000}, {Name: "frozen", Detail: true}}}, {Number: 1, Promise: "a", Broken: 3}}},
		{rows: []row{{Number: 1, Promise: "a", Kept: true, Figures: []figure{{Name: "slowest", Value: 4.25, Unit: "ms"}}}}},
	} {
		assert.NoError(t, run.publish(&bytes.Buffer{}, dir))
	}
	page := assert.Must(os.ReadFile(filepath.Join(dir, "torture.md")))(t)
	lines := strings.Split(strings.TrimSpace(string(page)), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[2], "| 1 | a |  | slowest: 4.25 ms | kept, ") ||
		!strings.HasPrefix(lines[3], "| 2 | b |  | tried: 1,000,000 | kept, ") {
		t.Errorf("%s", page)
	}
}
