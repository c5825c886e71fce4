// Package results holds what benchmarks measure, and prints it as tables.
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
	Commit      string      `json:"commit"` // of the working tree, with "-dirty" if it has changes
	Against     string      `json:"against,omitempty"`
	Connections int         `json:"connections"`
	Rounds      int         `json:"rounds"`
	Turn        string      `json:"turn"`
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

// Benchmark is the result of one benchmark: cases under load, and single values.
type Benchmark struct {
	Name   string  `json:"name"`
	Cases  []Case  `json:"cases,omitempty"`
	Values []Value `json:"values,omitempty"`
}

// Case is the result of one kind of request to one server.
type Case struct {
	Name   string  `json:"name"`
	Ratios []Value `json:"ratios"`
	Rounds []Round `json:"rounds"`
}

// Round is the result of one turn of a case. CPU times and allocations are per request.
type Round struct {
	Requests    int     `json:"requests"`
	Failed      int     `json:"failed"`
	Rate        float64 `json:"requests_per_second"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	Server      float64 `json:"server_us"` // CPU microseconds
	Store       float64 `json:"store_us"`
	Allocations float64 `json:"allocations"` // of the server
	Allocated   float64 `json:"allocated_bytes"`
	Resident    float64 `json:"resident_mb"` // of the server, after the turn
}

// Throughput is the number of good answers per second.
func (r Round) Throughput() float64 { return r.Rate }

// CPU is the CPU time of the server and of what keeps its data.
func (r Round) CPU() float64 { return r.Server + r.Store }

// ServerCPU is the CPU time of the server.
func (r Round) ServerCPU() float64 { return r.Server }

// Value is a single result with its unit.
type Value struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Figure
	AtMost  float64 `json:"at_most,omitempty"` // the target; 0 for none
	AtLeast float64 `json:"at_least,omitempty"`
}

// Figure is the figure of one value of each round.
func (c Case) Figure(value func(Round) float64) Figure {
	var values []float64
	for _, r := range c.Rounds {
		values = append(values, value(r))
	}
	return FigureOf(values...)
}

// Case returns the case with that name, an empty one if there is none.
func (b Benchmark) Case(name string) Case {
	for _, c := range b.Cases {
		if c.Name == name {
			return c
		}
	}
	return Case{}
}

// Benchmark returns the result of one benchmark, an empty one if the run did not include it.
func (r Report) Benchmark(name string) Benchmark {
	for _, b := range r.Benchmarks {
		if b.Name == name {
			return b
		}
	}
	return Benchmark{}
}

// Read reads a report from a file that Write has written.
func Read(path string) (r Report, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read the results: %w", err)
	}
	return r, nil
}

// Write writes the report to a file, as JSON.
func (r Report) Write(path string) error {
	out, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(out, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
