package main

import (
	"errors"
	"os"
	"path/filepath"

	"commerce/cmd/bench/plots"
	"commerce/cmd/bench/results"
)

// Names of the files that a run writes next to its plots.
const (
	resultsFile = "results.json"
	tablesFile  = "results.md"
)

// drawFrom draws again from the results in a directory.
func drawFrom(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: bench draw directory")
	}
	return draw(args[0])
}

// draw reads the results in a directory, and writes their tables and plots next to them.
func draw(dir string) error {
	report, err := results.Read(filepath.Join(dir, resultsFile))
	if err != nil {
		return err
	}
	tables, err := os.Create(filepath.Join(dir, tablesFile))
	if err != nil {
		return err
	}
	if err := errors.Join(report.Markdown(tables), tables.Close()); err != nil {
		return err
	}
	return plots.Draw(report, dir)
}
