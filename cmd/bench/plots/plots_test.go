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

// names are the plots of a run of all benchmarks.
func names() []string {
	return []string{"cpu", "throughput", "latency", "memory", "pages", "readers"}
}

func drawn(t *testing.T, r results.Report) string {
	t.Helper()
	dir := t.TempDir()
	if err := plots.Draw(r, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func smallReport(t *testing.T) results.Report {
	t.Helper()
	r, err := results.Read("testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDraw_WritesEachPlotInTwoThemes(t *testing.T) {
	t.Parallel()
	dir := drawn(t, smallReport(t))
	for _, name := range names() {
		texts := map[string]string{}
		for _, theme := range []string{"light", "dark"} {
			svg, err := os.ReadFile(filepath.Join(dir, name+"-"+theme+".svg"))
			if err != nil {
				t.Error(err)
				continue
			}
			if len(svg) > 60<<10 {
				t.Errorf("%s-%s has %d bytes, which is more than a page should load", name, theme, len(svg))
			}
			texts[theme] = textOf(t, svg)
			if strings.Contains(texts[theme], "NaN") || strings.Contains(texts[theme], "Inf") {
				t.Errorf("%s-%s shows a value that is not a number: %s", name, theme, texts[theme])
			}
		}
		if texts["light"] != texts["dark"] || len(texts["light"]) < 100 {
			t.Errorf("%s: the light plot says %q, the dark one %q", name, texts["light"], texts["dark"])
		}
	}
}

// textOf returns the words of an SVG document, and fails if it is not well-formed.
func textOf(t *testing.T, svg []byte) string {
	t.Helper()
	var words strings.Builder
	root := ""
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if root == "" {
				root = token.Name.Local
			}
		case xml.CharData:
			words.Write(token)
		}
	}
	if root != "svg" {
		t.Errorf("the document is a %q, not svg", root)
	}
	return strings.Join(strings.Fields(words.String()), " ")
}

func TestDraw_SaysWhatTheFiguresAre(t *testing.T) {
	t.Parallel()
	dir := drawn(t, smallReport(t))
	for name, want := range map[string][]string{
		"cpu":        {"GET /cart takes 0.92 × the CPU time of a minimal program", "CPU time per request (µs)"},
		"throughput": {"20,000 reads of a cart per second", "requests per second"},
		"latency":    {"At 12,000 reads per second, 99 of 100 take less than 4.5 ms (floor-get: 4 ms)", "offered load (requests/s)", "floor-get"},
		"memory":     {"A cart with 5 lines takes 216 bytes in Redis", "lines in the cart", "published client"},
		"pages":      {"By link, page 1,000 costs 1.02 × page 1; by number, 5.5 ×", "by link"},
		"readers":    {"With 64 readers, a read takes 2.3 µs of Redis CPU time batched, 17 µs one by one", "concurrent readers"},
	} {
		svg, err := os.ReadFile(filepath.Join(dir, name+"-light.svg"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, words := range want {
			if text := textOf(t, svg); !strings.Contains(text, words) {
				t.Errorf("%s does not say %q: %s", name, words, text)
			}
		}
	}
}

func TestDraw_LeavesOutWhatWasNotMeasured(t *testing.T) {
	t.Parallel()
	r := smallReport(t)
	memory, _ := r.Benchmark("memory")
	dir := drawn(t, results.Report{Benchmarks: []results.Benchmark{memory}})
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v: wrote %v, want the memory plot in two themes", err, files)
	}
}

// A very short turn may not use a measurable amount of CPU time, which has no place on a
// logarithmic axis.
func TestDraw_LeavesOutZerosOnALogarithmicAxis(t *testing.T) {
	t.Parallel()
	readers, _ := smallReport(t).Benchmark("readers")
	readers.Curves[0].Series[0].Points[0].Figure = results.Figure{}
	dir := drawn(t, results.Report{Benchmarks: []results.Benchmark{readers}})
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("%v: wrote %v, want nothing", err, files)
	}
}
