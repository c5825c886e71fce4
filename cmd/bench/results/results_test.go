package results_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/cmd/bench/results"
)

func report() results.Report {
	slow := results.NewCase("slow", []results.Round{{Rate: 100, Server: 30, Store: 10}, {Rate: 120, Server: 30, Store: 14}})
	slow.Ratios = []results.Ratio{
		{Cost: results.CPU, Of: "fast", Figure: results.FigureOf(4, 4.2), AtMost: new(0.9)},
		{Cost: results.StoreCPU, Of: "fast", Figure: results.FigureOf(2)},
	}
	return results.Report{Rounds: 2, Benchmarks: []results.Benchmark{
		{Name: "get", Store: "Redis", Cases: []results.Case{slow}},
		{Name: "writes", Values: []results.Value{
			{Name: "bytes of 1000 reads", Unit: "bytes", AtMost: new(0.0)},
			{Name: "requests", Figure: results.FigureOf(1000)},
		}},
	}}
}

func TestMarkdown_ListsTargetsFirstAndMarksWhatMisses(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := report().Markdown(&out); err != nil {
		t.Fatal(err)
	}
	targets, rest, _ := strings.Cut(out.String(), "## get\n")
	for _, row := range []string{
		"| get: slow: CPU | 4.10 (4..4.20) × fast | 0.900 | MISSED |",
		"| writes: bytes of 1000 reads | 0 bytes | 0 | met |",
	} {
		if !strings.Contains(targets, row+"\n") {
			t.Errorf("no row %q among the targets:\n%s", row, targets)
		}
	}
	if strings.Contains(targets, "requests") {
		t.Errorf("a value without a target is among the targets:\n%s", targets)
	}
	for _, row := range []string{"| slow | 110 (100..120) |", "| slow: Redis CPU | 2 × fast |  |  |", "| requests | 1000 |  |  |"} {
		if !strings.Contains(rest, row) {
			t.Errorf("no row %q:\n%s", row, rest)
		}
	}
}

func TestPrint_MarksWhatMisses(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, b := range report().Benchmarks {
		if err := b.Print(&out); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Count(got, "MISSED") != 1 || strings.Count(got, " met") != 1 {
		t.Errorf("want one target missed and one met:\n%s", got)
	}
}

func TestRead_ReturnsWhatWasWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.json")
	want := report()
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := results.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestFigure_IsTheMedianWithItsRange(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]float64{
		"0":                    nil,
		"3":                    {3},
		"2.50 (1..4)":          {4, 1, 3, 2},
		"12346 (12345..12346)": {12345.4, 12345.9, 12346.3},
	} {
		if got := results.FigureOf(values...).String(); got != want {
			t.Errorf("%v: got %q, want %q", values, got, want)
		}
	}
}
