package torture

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// table is the rows of the promises that were tested.
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

// publish prints the table, and writes it to dir as torture.json and torture.md unless dir
// is empty.
func (t *table) publish(w io.Writer, dir string) error {
	slices.SortStableFunc(t.rows, func(a, b row) int { return cmp.Compare(a.Number, b.Number) })
	if err := t.text(w); err != nil || dir == "" {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	rows, err := json.MarshalIndent(t.rows, "", "  ")
	if err != nil {
		return err
	}
	var page bytes.Buffer
	t.markdown(&page)
	for name, content := range map[string][]byte{"torture.json": append(rows, '\n'), "torture.md": page.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// text prints one line for each figure, because a row is wider than a terminal.
func (t *table) text(w io.Writer) error {
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range t.rows {
		fmt.Fprintf(aligned, "%d\t%s\t%s\t%s\n", r.Number, r.verdict(), r.time(), r.Promise)
		for _, f := range r.Figures {
			fmt.Fprintf(aligned, "\t\t\t  %s\n", f)
		}
	}
	return aligned.Flush()
}

func (t *table) markdown(w io.Writer) {
	fmt.Fprintln(w, "| # | promise | to reach | found | | time |\n|---|---|---|---|---|---|")
	for _, r := range t.rows {
		found := make([]string, len(r.Figures))
		for i, f := range r.Figures {
			found[i] = f.String()
		}
		fmt.Fprintf(w, "| %d | %s | %s | %s | %s | %s |\n",
			r.Number, r.Promise, r.ToReach, strings.Join(found, "<br>"), r.verdict(), r.time())
	}
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

func (r row) time() string {
	return (time.Duration(r.Seconds*1000) * time.Millisecond).Round(100 * time.Millisecond).String()
}
