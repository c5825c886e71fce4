package main

import (
	"fmt"
	"strings"

	"commerce/cmd/bench/results"
)

// peersPage writes the tables of docs/compared.md: reads, adds, and what a process takes.
func peersPage(b results.Benchmark) string {
	var page strings.Builder
	for _, kind := range []string{"read", "add"} {
		row(&page, kind, "requests/s", "p50 ms", "p99 ms", "CPU of the program, ms", "CPU of its stores, ms", "CPU in all, compared")
		row(&page, strings.Fields(strings.Repeat("--- ", 7))...)
		for _, c := range b.Cases {
			name, ok := strings.CutPrefix(c.Name, kind+": ")
			if !ok {
				continue
			}
			ratio := "1"
			for _, r := range c.Ratios {
				ratio = r.String() + " ×"
			}
			row(&page, name, c.Rate.String(), c.P50.String(), c.P99.String(), inMilliseconds(c.Server), inMilliseconds(c.Store), ratio)
		}
		page.WriteByte('\n')
	}
	row(&page, "", "start to first answer, s", "memory after the start, MB", "memory under load, MB", "answer to a read, bytes", "of 40 adds, two at a time: refused", "lost")
	row(&page, strings.Fields(strings.Repeat("--- ", 7))...)
	for _, c := range b.Cases {
		if name, ok := strings.CutPrefix(c.Name, "add: "); ok {
			row(&page, name, value(b, startTime+name), value(b, startMemory+name), c.Resident.String(),
				value(b, readSize+name), value(b, refusedAdds+name), value(b, lostAdds+name))
		}
	}
	return page.String()
}

// peersSummary writes the rows of the README's table: the medians, with the CPU time of the
// stores added to that of the program.
func peersSummary(b results.Benchmark) string {
	var page strings.Builder
	for _, kind := range []string{"read", "add"} {
		cells := []string{map[string]string{"read": "CPU per read of a cart of five lines", "add": "CPU per add"}[kind]}
		for _, c := range b.Cases {
			if strings.HasPrefix(c.Name, kind+": ") {
				cells = append(cells, results.FigureOf((c.Server.Median+c.Store.Median)/1e3).String()+" ms")
			}
		}
		row(&page, cells...)
	}
	memory, lost := []string{"memory under load"}, []string{"lost of 40 adds, sent two at a time"}
	for _, c := range b.Cases {
		if name, ok := strings.CutPrefix(c.Name, "add: "); ok {
			memory = append(memory, results.FigureOf(c.Resident.Median).String()+" MB")
			for _, v := range b.Values {
				if v.Name == lostAdds+name {
					lost = append(lost, results.FigureOf(v.Figure.Median).String())
				}
			}
		}
	}
	row(&page, memory...)
	row(&page, lost...)
	return page.String()
}

// value returns the figure of a value of the benchmark.
func value(b results.Benchmark, name string) string {
	for _, v := range b.Values {
		if v.Name == name {
			return v.Figure.String()
		}
	}
	return "?"
}

func row(page *strings.Builder, cells ...string) {
	fmt.Fprintf(page, "| %s |\n", strings.Join(cells, " | "))
}

// inMilliseconds writes a figure in microseconds.
func inMilliseconds(f results.Figure) string {
	return results.Figure{
		Median: results.Rounded(f.Median / 1e3), Min: results.Rounded(f.Min / 1e3), Max: results.Rounded(f.Max / 1e3),
	}.String()
}
