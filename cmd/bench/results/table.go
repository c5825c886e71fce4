package results

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table is a table. Its first row is the heading.
type table [][]string

// write writes the table as Markdown with aligned columns, which a terminal shows well too. It
// writes nothing for a heading alone.
func (t table) write(w io.Writer) error {
	if len(t) < 2 {
		return nil
	}
	aligned := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	for i, row := range t {
		fmt.Fprintf(aligned, "| %s\t|\n", strings.Join(row, "\t| "))
		if i == 0 {
			fmt.Fprintln(aligned, strings.Repeat("| ---\t", len(row))+"|")
		}
	}
	fmt.Fprintln(aligned)
	return aligned.Flush()
}

// cases is the table of what each case took, in medians, with its distance to the floors that the benchmark has.
func (b Benchmark) cases() table {
	t := table{{b.Name, "requests/s", "p50 ms", "p99 ms", "server CPU µs", "stores' CPU µs", "resident MB"}}
	server := func(r Round) float64 { return r.Server }
	store := func(r Round) float64 { return r.Store }
	floors := b.floors(map[string]func(Round) float64{
		"floor-ping": server, "floor-list": server, "floor-hgetall": store, "floor-script": store,
	})
	for _, floor := range floors {
		t[0] = append(t[0], "× "+floor.Name)
	}
	for _, c := range b.Cases {
		row, failed := []string{c.Name}, 0
		for _, value := range []func(Round) float64{
			func(r Round) float64 { return r.Rate },
			func(r Round) float64 { return r.P50 },
			func(r Round) float64 { return r.P99 },
			server,
			store,
			func(r Round) float64 { return r.Resident },
		} {
			row = append(row, short(c.Figure(value).Median))
		}
		for _, floor := range floors {
			row = append(row, short(c.Over(floor.Case, floor.value).Median))
		}
		for _, r := range c.Rounds {
			failed += r.Failed
		}
		if failed > 0 {
			row[0] += fmt.Sprintf(" (%d failed)", failed)
		}
		t = append(t, row)
	}
	return t
}

// floor is a case that others are compared with, by one value.
type floor struct {
	Case
	value func(Round) float64
}

func (b Benchmark) floors(values map[string]func(Round) float64) (found []floor) {
	for _, c := range b.Cases {
		if value := values[c.Name]; value != nil {
			found = append(found, floor{c, value})
		}
	}
	return found
}

// row is a row of the table of values: what, the figure, the target, and whether it is met.
func (v Value) row() []string {
	row := []string{v.Name, strings.TrimSpace(v.String() + " " + v.Unit), "", ""}
	switch {
	case v.AtMost > 0:
		row[2], row[3] = short(v.AtMost), "met"
	case v.AtLeast > 0:
		row[2], row[3] = "at least "+short(v.AtLeast), "met"
	}
	if v.AtMost > 0 && v.Median > v.AtMost || v.Median < v.AtLeast {
		row[3] = "MISSED"
	}
	return row
}

// values are the rows of ratios and values.
func (b Benchmark) values() table {
	var t table
	for _, c := range b.Cases {
		for _, ratio := range c.Ratios {
			ratio.Name = c.Name + ": " + ratio.Name
			t = append(t, ratio.row())
		}
	}
	for _, v := range b.Values {
		t = append(t, v.row())
	}
	return t
}

// Markdown writes results as Markdown: what has a target, and then for each benchmark what its cases
// took, and what has none.
func Markdown(w io.Writer, benchmarks ...Benchmark) error {
	targets := table{{"target", "measured", "at most", ""}}
	others := map[string]table{} // by benchmark
	for _, b := range benchmarks {
		others[b.Name] = table{{b.Name, "measured"}}
		for _, row := range b.values() {
			if row[3] != "" {
				targets = append(targets, append([]string{b.Name + ": " + row[0]}, row[1:]...))
			} else {
				others[b.Name] = append(others[b.Name], row[:2])
			}
		}
	}
	if len(targets) > 1 {
		fmt.Fprint(w, "## Targets\n\n")
		if err := targets.write(w); err != nil {
			return err
		}
	}
	for _, b := range benchmarks {
		fmt.Fprintf(w, "## %s\n\n", b.Name)
		if err := errors.Join(b.cases().write(w), others[b.Name].write(w)); err != nil {
			return err
		}
	}
	return nil
}
