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
	"commerce/deploy/assert"
)

func report(t *testing.T) results.Report {
	t.Helper()
	r := assert.Must(results.Read("../../../docs/performance/results.json"))(t)
	return r
}

// wordsOf returns the words of the plots in a directory by their names. It fails if one is not
// well-formed or shows a value that is not a number.
func wordsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := assert.Must(filepath.Glob(filepath.Join(dir, "*.svg")))(t)
	all := map[string]string{}
	for _, file := range files {
		svg := assert.Must(os.ReadFile(file))(t)
		var words strings.Builder
		for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			assert.Require(t, err == nil, "%s is not well-formed: %v", file, err)
			if chars, ok := token.(xml.CharData); ok {
				words.Write(chars)
			}
		}
		assert.That(t, !bytes.Contains(svg, []byte("NaN")) && !bytes.Contains(svg, []byte("Inf")) && len(svg) <= 20<<10,
			"%s has %d bytes, or a value that is not a number:\n%s", file, len(svg), svg)
		all[filepath.Base(file)] = words.String()
	}
	return all
}

func TestDraw_WritesTheCommittedPlots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	assert.NoError(t, plots.Draw(report(t), dir))
	got, committed := wordsOf(t, dir), wordsOf(t, "../../../docs/performance")
	for name, words := range map[string]string{
		"cpu.svg":     "the CPU time of a minimal program, POST /cart/add",
		"latency.svg": "reads per second, 99 of 100 take less than",
	} {
		assert.That(t, strings.Contains(got[name], words) && got[name] == committed[name],
			"%s says %q, the committed one %q", name, got[name], committed[name])
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
		assert.NoError(t, plots.Draw(r, dir))
		_, err := os.Stat(filepath.Join(dir, "latency.svg"))
		assert.That(t, errors.Is(err, os.ErrNotExist), "%s: %v, want no plot of the latency", name, err)
	}
}
