// Package plots draws the results of the benchmarks as SVG, each plot for light and for
// dark pages.
package plots

import (
	"fmt"
	"os"
	"path/filepath"

	"commerce/cmd/bench/results"
)

// drawing is a plot that can be drawn on a page.
type drawing interface {
	draw(p *page)
}

// figure is one plot of a report. Its make returns false if the report does not have the
// results that it shows.
type figure struct {
	file string // without theme and extension
	make func(results.Report) (drawing, bool)
}

func figures() []figure {
	return []figure{
		{"cpu", cpuBars},
		{"throughput", throughputBars},
		{"latency", latencyLines},
		{"memory", memoryLines},
		{"pages", pageLines},
		{"readers", readerLines},
	}
}

// Draw writes the plots of a report to a directory: for each plot one file for light
// pages, and one for dark pages.
func Draw(r results.Report, dir string) error {
	for _, f := range figures() {
		drawing, ok := f.make(r)
		if !ok {
			continue
		}
		for _, theme := range []theme{light(), dark()} {
			page := newPage(theme)
			drawing.draw(page)
			path := filepath.Join(dir, f.file+"-"+theme.name+".svg")
			if err := os.WriteFile(path, page.svg(), 0o644); err != nil {
				return fmt.Errorf("write a plot: %w", err)
			}
		}
	}
	return nil
}
