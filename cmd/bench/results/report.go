// Package results holds what the benchmarks measure, and prints it as tables.
package results

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Report is the result of a run, as written to a file.
type Report struct {
	Began       time.Time   `json:"began"`
	Took        string      `json:"took"`
	Machine     Machine     `json:"machine"`
	Go          string      `json:"go"`
	Commit      string      `json:"commit"` // of the working tree
	Connections int         `json:"connections"`
	Rounds      int         `json:"rounds"`
	Turn        string      `json:"turn"`
	Programs    []Program   `json:"programs"`
	Benchmarks  []Benchmark `json:"benchmarks"`
}

// Machine is the computer that ran the benchmarks.
type Machine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPU  string `json:"cpu"`
	CPUs int    `json:"cpus"`
	Load string `json:"load"` // averages of 1, 5 and 15 minutes before the run
}

// Program identifies a measured service.
type Program struct {
	Name   string `json:"name"` // as in the names of cases
	Path   string `json:"path"` // "" if built from this tree
	Go     string `json:"go"`
	Commit string `json:"commit"` // "" if unknown
}

// Read reads a report from a file that Write has written.
func Read(path string) (Report, error) {
	var r Report
	text, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read the results: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read the results in %s: %w", path, err)
	}
	return r, nil
}

// Write writes the report to a file, as JSON.
func (r Report) Write(path string) error {
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(out, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// Benchmark returns the results of one benchmark; false if the run did not include it.
func (r Report) Benchmark(name string) (Benchmark, bool) {
	for _, b := range r.Benchmarks {
		if b.Name == name {
			return b, true
		}
	}
	return Benchmark{}, false
}
