package plots_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"commerce/cmd/bench/plots"
	"commerce/cmd/bench/results"
)

// report is that of the committed plots.
func report(t *testing.T) results.Report {
	t.Helper()
	r, err := results.Read("../../../docs/performance/results.json")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wordsOf returns the words of the plots in a directory by their names. It fails if one is not
// well-formed or shows a value that is not a number.
func wordsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		svg, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var words strings.Builder
		for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s is not well-formed: %v", file, err)
			}
			if chars, ok := token.(xml.CharData); ok {
				words.Write(chars)
			}
		}
		if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) || len(svg) > 20<<10 {
			t.Errorf("%s has %d bytes, or a value that is not a number:\n%s", file, len(svg), svg)
		}
		all[filepath.Base(file)] = words.String()
	}
	return all
}

func TestDraw_WritesTheCommittedPlots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := plots.Draw(report(t), dir); err != nil {
		t.Fatal(err)
	}
	got, committed := wordsOf(t, dir), wordsOf(t, "../../../docs/performance")
	for name, words := range map[string]string{
		"cpu.svg":     "the CPU time of a minimal program, POST /cart/add",
		"latency.svg": "reads per second, 99 of 100 take less than",
	} {
		if !strings.Contains(got[name], words) || got[name] != committed[name] {
			t.Errorf("%s says %q, the committed one %q", name, got[name], committed[name])
		}
	}
}

// A very short turn may measure 0, which has no place on a logarithmic axis.
func TestDraw_LeavesOutWhatItCannotShow(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*results.Report){
		"not measured": func(r *results.Report) { r.Benchmarks = nil },
		"zero":         func(r *results.Report) { r.Benchmark("latency").Cases[0].Rounds[0].P99 = 0 },
	} {
		dir, r := t.TempDir(), report(t)
		edit(&r)
		if err := plots.Draw(r, dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "latency.svg")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, want no plot of the latency", name, err)
		}
	}
}
