package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// results are the results of one benchmark.
type results struct {
	Name  string       `json:"name"`
	Cases []caseResult `json:"cases"`
}

// caseResult is the result of a case over all rounds. Server and Store are CPU
// microseconds per request.
type caseResult struct {
	Name   string  `json:"name"`
	Failed int     `json:"failed"` // requests in all rounds
	Rate   figure  `json:"requests_per_second"`
	P50    figure  `json:"p50_ms"`
	P99    figure  `json:"p99_ms"`
	Server figure  `json:"server_us"`
	Store  figure  `json:"store_us"`
	Ratios []ratio `json:"ratios"`
	Rounds []round `json:"rounds"`
}

// figure is the median and the range of all rounds.
type figure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// ratio compares CPU per request with another case, round by round.
type ratio struct {
	Of string `json:"of"`
	figure
	Maximum float64 `json:"at_most,omitempty"`
}

func summarize(cases []testCase, rounds [][]round) results {
	byName := map[string][]round{}
	var r results
	for i, c := range cases {
		own := rounds[i]
		byName[c.name] = own
		s := caseResult{
			Name: c.name, Rounds: own, Ratios: []ratio{},
			Rate:   figureOf(own, func(r round) float64 { return r.Rate }),
			P50:    figureOf(own, func(r round) float64 { return r.P50 }),
			P99:    figureOf(own, func(r round) float64 { return r.P99 }),
			Server: figureOf(own, serverCost),
			Store:  figureOf(own, storeCost),
		}
		for _, r := range own {
			s.Failed += r.Failed
		}
		for _, by := range c.compared {
			s.Ratios = append(s.Ratios, by.ratio(own, byName[by.of]))
		}
		r.Cases = append(r.Cases, s)
	}
	return r
}

func (c comparison) ratio(own, other []round) ratio {
	var values []float64
	for i := range own {
		if base := c.cost(other[i]); base > 0 { // the CPU time of a very short turn may be 0
			values = append(values, c.cost(own[i])/base)
		}
	}
	return ratio{Of: c.of, figure: spread(values), Maximum: c.maximum}
}

func figureOf(rounds []round, value func(round) float64) figure {
	var values []float64
	for _, r := range rounds {
		values = append(values, value(r))
	}
	return spread(values)
}

// spread returns the figure of values, zero if there are none. It sorts values.
func spread(values []float64) figure {
	if len(values) == 0 {
		return figure{}
	}
	slices.Sort(values)
	n := len(values)
	return figure{Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1]}
}

// text is "median (min..max)".
func (f figure) text(decimals int) string {
	return fmt.Sprintf("%.*f (%.*f..%.*f)", decimals, f.Median, decimals, f.Min, decimals, f.Max)
}

func (r results) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\trequests/s\tp50 ms\tp99 ms\tserver CPU µs\tstore CPU µs\tratio\n", r.Name)
	for _, c := range r.Cases {
		var ratios []string
		for _, q := range c.Ratios {
			text := q.text(2) + " of " + q.Of
			if q.Maximum > 0 {
				text += fmt.Sprintf(", at most %g", q.Maximum)
			}
			ratios = append(ratios, text)
		}
		name := c.Name
		if c.Failed > 0 {
			name += fmt.Sprintf(" (%d failed)", c.Failed)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, c.Rate.text(0), c.P50.text(1), c.P99.text(1),
			c.Server.text(1), c.Store.text(1), cmp.Or(strings.Join(ratios, "; "), "-"))
	}
	fmt.Fprintln(table)
	return table.Flush()
}
