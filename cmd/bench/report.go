package main

import (
	"context"
	"debug/buildinfo"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"commerce/cmd/bench/results"
)

// newReport describes the run and the machine.
func newReport(ctx context.Context, o options) results.Report {
	r := results.Report{
		Began: time.Now().UTC().Truncate(time.Second), Machine: thisMachine(), Go: runtime.Version(), Commit: head(ctx),
		Connections: o.connections, Rounds: o.rounds, Turn: o.turn.String(), Benchmarks: []results.Benchmark{},
	}
	r.Programs = append(r.Programs, identify("service", o.binary, r.Commit))
	if o.against != "" {
		r.Programs = append(r.Programs, identify("against", o.against, ""))
	}
	return r
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

func identify(name, path, commit string) results.Program {
	id := results.Program{Name: name, Path: path, Go: runtime.Version(), Commit: commit}
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

func thisMachine() results.Machine {
	m := results.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
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
