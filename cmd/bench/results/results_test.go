package results_test

import (
	"strings"
	"testing"

	"commerce/cmd/bench/results"
	"commerce/deploy/assert"
)

func measured() []results.Benchmark {
	slow := results.Case{
		Name:   "slow",
		Rounds: []results.Round{{Rate: 100, Server: 30, Store: 10, Failed: 1}, {Rate: 120, Server: 30, Store: 14, Failed: 2}},
		Ratios: []results.Value{
			{Name: "CPU", Unit: "× fast", Figure: results.FigureOf(4, 4.2), AtMost: 0.9},
			{Name: "stores' CPU", Unit: "× fast", Figure: results.FigureOf(2)},
		},
	}
	ping := results.Case{Name: "floor-ping", Rounds: []results.Round{{Server: 10}, {Server: 20}}}
	return []results.Benchmark{
		{Name: "get", Cases: []results.Case{ping, slow}},
		{Name: "memory", Values: []results.Value{
			{Name: "a cart", Unit: "bytes", Figure: results.FigureOf(200), AtMost: 240},
			{Name: "goodput", Figure: results.FigureOf(0.5), AtLeast: 0.8},
			{Name: "requests", Figure: results.FigureOf(1000)},
		}},
	}
}

// rows returns the rows of tables without the spaces that align their columns.
func rows(tables string) string {
	var all strings.Builder
	for line := range strings.Lines(tables) {
		all.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return all.String()
}

func TestMarkdown_ListsTargetsFirstAndMarksWhatMisses(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	assert.NoError(t, results.Markdown(&out, measured()...))
	targets, rest, _ := strings.Cut(rows(out.String()), "## get\n")
	for _, row := range []string{
		"| get: slow: CPU | 4.10 (4..4.20) × fast | 0.900 | MISSED |",
		"| memory: a cart | 200 bytes | 240 | met |",
		"| memory: goodput | 0.500 | at least 0.800 | MISSED |",
	} {
		assert.That(t, strings.Contains(targets, row+"\n"), "no row %q among the targets:\n%s", row, targets)
	}
	assert.That(t, !strings.Contains(rest, "MISSED"), "a target is not only in the first table:\n%s", rest)
	assert.That(t, !strings.Contains(targets, "requests"), "a value without a target is among the targets:\n%s", targets)
	for _, row := range []string{"| slow (3 failed) | 110 |", "| 12 | 0 | 2.25 |\n", "| slow: stores' CPU | 2 × fast |\n", "| requests | 1000 |\n"} {
		assert.That(t, strings.Contains(rest, row), "no row %q:\n%s", row, rest)
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
		assert.Equal(t, results.FigureOf(values...).String(), want, "%v", values)
	}
}
