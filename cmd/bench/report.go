package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// report is the result of a run, as written to a file.
type report struct {
	Began       time.Time   `json:"began"`
	Machine     machine     `json:"machine"`
	Go          string      `json:"go"`
	Commit      string      `json:"commit"` // of the working tree
	Connections int         `json:"connections"`
	Rounds      int         `json:"rounds"`
	Turn        string      `json:"turn"`
	Programs    []programID `json:"programs"`
	Benchmarks  []results   `json:"benchmarks"`
}

type machine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPU  string `json:"cpu"`
	CPUs int    `json:"cpus"`
	Load string `json:"load"` // averages of 1, 5 and 15 minutes before the run
}

// programID identifies a measured service.
type programID struct {
	Name   string `json:"name"` // as in the names of cases
	Path   string `json:"path"` // "" if built from this tree
	Go     string `json:"go"`
	Commit string `json:"commit"` // "" if unknown
}

func newReport(ctx context.Context, o options) report {
	r := report{
		Began: time.Now().UTC().Truncate(time.Second), Machine: thisMachine(), Go: runtime.Version(), Commit: head(ctx),
		Connections: o.connections, Rounds: o.rounds, Turn: o.turn.String(),
	}
	r.Programs = append(r.Programs, identify("service", o.binary, r.Commit))
	if o.against != "" {
		r.Programs = append(r.Programs, identify("against", o.against, ""))
	}
	return r
}

func (r report) write(path string) error {
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(out, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// head returns the commit of the working tree, with "-dirty" if it has changes. It returns
// "" outside of a repository.
func head(ctx context.Context) string {
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	id := strings.TrimSpace(string(commit))
	if changed, _ := exec.CommandContext(ctx, "git", "status", "--porcelain").Output(); len(changed) > 0 {
		id += "-dirty"
	}
	return id
}

func identify(name, path, commit string) programID {
	id := programID{Name: name, Path: path, Go: runtime.Version(), Commit: commit}
	if path == "" {
		return id
	}
	id.Go, id.Commit = "", ""
	info, err := buildinfo.ReadFile(path)
	if err != nil { // the run itself will report the error
		return id
	}
	id.Go = info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			id.Commit = s.Value[:min(len(s.Value), 7)]
		}
	}
	return id
}

func thisMachine() machine {
	m := machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(load)); len(f) >= 3 {
		m.Load = strings.Join(f[:3], " ")
	}
	return m
}
