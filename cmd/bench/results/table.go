package results

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table is a table as text or as Markdown. Its first row is the heading.
type table [][]string

// text writes the table with aligned columns.
func (t table) text(w io.Writer) error {
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(aligned, strings.Join(row, "\t"))
	}
	fmt.Fprintln(aligned)
	return aligned.Flush()
}

// markdown writes the table as Markdown.
func (t table) markdown(w io.Writer) error {
	for i, row := range t {
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | ")); err != nil {
			return err
		}
		if i == 0 {
			fmt.Fprintln(w, strings.Repeat("|---", len(row))+"|")
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// cases is the table of what each case took.
func (b Benchmark) cases() table {
	t := table{{
		b.Name, "requests/s", "p50 ms", "p99 ms", "server CPU µs", b.Store + " CPU µs",
		"allocations", "allocated bytes", "resident MB",
	}}
	for _, c := range b.Cases {
		name := c.Name
		if c.Failed > 0 {
			name += fmt.Sprintf(" (%d failed)", c.Failed)
		}
		t = append(t, []string{
			name, c.Rate.String(), c.P50.String(), c.P99.String(), c.Server.String(), c.Store.String(),
			c.Allocations.String(), c.Allocated.String(), c.Resident.String(),
		})
	}
	return t
}

// compared is the table of ratios and values. onlyTargets leaves out those without a
// target.
func (b Benchmark) compared(onlyTargets bool) table {
	t := table{{b.Name, "measured", "at most", ""}}
	add := func(what, measured string, atMost *float64, missed bool) {
		if onlyTargets && atMost == nil {
			return
		}
		row := []string{what, measured, "", ""}
		if atMost != nil {
			row[2], row[3] = short(*atMost), "met"
		}
		if missed {
			row[3] = "MISSED"
		}
		t = append(t, row)
	}
	for _, c := range b.Cases {
		for _, r := range c.Ratios {
			add(c.Name+": "+r.Cost.name(b.Store), r.String()+" × "+r.Of, r.AtMost, r.Missed())
		}
	}
	for _, v := range b.Values {
		measured := strings.TrimSpace(v.String() + " " + v.Unit)
		add(v.Name, measured, cmp.Or(v.AtMost, v.AtLeast), v.Missed())
		if v.AtLeast != nil {
			t[len(t)-1][2] = "at least " + short(*v.AtLeast)
		}
	}
	return t
}

// tables are the tables with at least one row below the heading.
func (b Benchmark) tables() []table {
	var all []table
	for _, t := range []table{b.cases(), b.compared(false)} {
		if len(t) > 1 {
			all = append(all, t)
		}
	}
	return all
}

// Print writes the results as text: what each case took, then ratios and values with
// their targets.
func (b Benchmark) Print(w io.Writer) error {
	for _, t := range b.tables() {
		if err := t.text(w); err != nil {
			return err
		}
	}
	return nil
}

// Markdown writes all results as Markdown, the targets first.
func (r Report) Markdown(w io.Writer) error {
	fmt.Fprintf(w, "# Results\n\n%s\n\n## Targets\n\n", r.conditions())
	targets := table{{"", "measured", "at most", ""}}
	for _, b := range r.Benchmarks {
		for _, row := range b.compared(true)[1:] {
			targets = append(targets, append([]string{b.Name + ": " + row[0]}, row[1:]...))
		}
	}
	if err := targets.markdown(w); err != nil {
		return err
	}
	for _, b := range r.Benchmarks {
		fmt.Fprintf(w, "## %s\n\n", b.Name)
		for _, t := range b.tables() {
			if err := t.markdown(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// conditions says in one paragraph where and how the results were measured.
func (r Report) conditions() string {
	s := fmt.Sprintf("Commit %s, %s, %s: %d CPUs (%s), %s/%s, load averages %s. %d connections, %d rounds, turns of %s; %s in all.",
		r.Commit, r.Began.Format("2006-01-02 15:04 MST"), r.Go, r.Machine.CPUs, r.Machine.CPU, r.Machine.OS, r.Machine.Arch,
		r.Machine.Load, r.Connections, r.Rounds, r.Turn, r.Took)
	return s + " Values are medians with the range of the rounds. CPU times, allocations and allocated bytes are per request."
}
