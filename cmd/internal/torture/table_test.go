package torture

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"commerce/deploy/assert"
)

type table struct {
	mu   sync.Mutex
	rows []row
}

// results is the table of this process. Only TestMain knows when it is complete.
var results table

func (t *table) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
}

// publish prints the table. Unless dir is empty, it also writes the table to dir as torture.json
// and torture.md. The files keep rows of earlier runs whose promises were not tested again.
func (t *table) publish(w io.Writer, dir string) error {
	slices.SortStableFunc(t.rows, byNumber)
	if err := text(w, t.rows); err != nil || dir == "" {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "torture.json")
	rows, err := earlier(file)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, t.hasAgain)
	rows = append(rows, t.rows...)
	slices.SortStableFunc(rows, byNumber)
	content, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "torture.md"), markdown(rows), 0o644)
}

// earlier returns the rows of a file, or none if the file does not exist.
func earlier(file string) (rows []row, err error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &rows)
	}
	return rows, err
}

func (t *table) hasAgain(r row) bool {
	return slices.ContainsFunc(t.rows, func(again row) bool { return again.Number == r.Number && again.Promise == r.Promise })
}

func byNumber(a, b row) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Promise, b.Promise))
}

// text prints one line for each figure, because a row is wider than a terminal.
func text(w io.Writer, rows []row) error {
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(aligned, "%d\t%s\t%s\t%s\n", r.Number, r.verdict(), r.time(), r.Promise)
		for _, f := range r.Figures {
			fmt.Fprintf(aligned, "\t\t\t  %s\n", f)
		}
	}
	return aligned.Flush()
}

func markdown(rows []row) []byte {
	var page bytes.Buffer
	page.WriteString("# The last runs\n\nThe numbers are those of the [promises](../guarantees.md).\n\n" +
		"| # | to reach | found | last run |\n|---|---|---|---|\n")
	for _, r := range rows {
		var found []string
		for _, f := range r.Figures {
			if !f.Detail {
				found = append(found, f.String())
			}
		}
		fmt.Fprintf(&page, "| %d | %s | %s | %s, %s, %s |\n",
			r.Number, r.ToReach, strings.Join(found, "<br>"), r.verdict(), r.time(), r.when())
	}
	return page.Bytes()
}

func (r row) verdict() string {
	switch {
	case r.Kept:
		return "kept"
	case r.Broken > 0:
		return "BROKEN"
	}
	return "FAILED"
}

// when is the date of the run, and which form was run unless it was the long one.
func (r row) when() string {
	if !r.Long {
		return r.Date + ", short form"
	}
	return r.Date
}

func (r row) time() string {
	return (time.Duration(r.Seconds*1000) * time.Millisecond).Round(100 * time.Millisecond).String()
}

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
	if len(lines) != 8 || !strings.HasPrefix(lines[6], "| 1 |  | slowest: 4.25 ms | kept, ") ||
		!strings.HasPrefix(lines[7], "| 2 |  | tried: 1,000,000 | kept, ") {
		t.Errorf("%s", page)
	}
}
