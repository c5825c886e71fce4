package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string // empty for the package
	Output     string
	Elapsed    float64 // seconds
}

// unit is a test, or a package if its test is empty.
type unit struct{ pkg, test string }

// String returns the path within the module, and the test.
func (u unit) String() string { return strings.TrimSpace(short(u.pkg) + " " + u.test) }

func short(pkg string) string { return strings.TrimPrefix(pkg, "commerce/") }

type progress struct {
	out      io.Writer
	start    time.Time
	packages int // with tests
	done     int
	passed   int             // tests
	running  map[string]int  // tests by package
	output   map[unit][]byte // of what has not passed
	failed   []unit
	shown    bool // whether the terminal's last line is the progress
}

func newProgress(out io.Writer, packages int) *progress {
	return &progress{
		out: out, start: time.Now(), packages: packages, running: map[string]int{}, output: map[unit][]byte{},
	}
}

func (p *progress) add(e event) {
	of := unit{cmp.Or(e.Package, e.ImportPath), e.Test}
	switch e.Action {
	case "run", "cont":
		p.running[e.Package]++
	case "pause":
		p.running[e.Package]--
	case "output", "build-output":
		p.output[of] = append(p.output[of], e.Output...)
	case "build-fail":
		p.failed = append(p.failed, of)
	case "pass", "skip", "fail":
		if e.Test == "" {
			p.endPackage(e)
			return
		}
		p.running[e.Package]--
		if e.Action != "fail" {
			delete(p.output, of)
		}
		if e.Action == "pass" {
			p.passed++
		}
	}
}

func (p *progress) endPackage(e event) {
	delete(p.running, e.Package)
	verdict := "ok  "
	switch e.Action {
	case "skip": // no tests
		return
	case "fail":
		verdict = "FAIL"
		p.failed = append(p.failed, p.suspects(e.Package)...)
	}
	p.done++
	p.line(fmt.Sprintf("%s  %-40s %6.1fs", verdict, short(e.Package), e.Elapsed))
}

// suspects returns what has printed something in a package that failed, and has not passed: its
// tests, also those that a panic, a timeout or a signal ended, and the package itself. If nothing
// has, it returns the package.
func (p *progress) suspects(pkg string) (all []unit) {
	for of := range p.output {
		if of.pkg == pkg && p.text(of) != "" {
			all = append(all, of)
		}
	}
	if all == nil {
		return []unit{{pkg: pkg}}
	}
	slices.SortFunc(all, func(a, b unit) int { return strings.Compare(a.test, b.test) })
	return all
}

// verdicts are lines by which go test ends a package, or begins a test.
var verdicts = regexp.MustCompile(`(?m)^(FAIL|FAIL\t.*|exit status \d+|=== (RUN|PAUSE|CONT|NAME) .*)\n`)

func (p *progress) text(of unit) string {
	return strings.TrimSuffix(string(verdicts.ReplaceAll(p.output[of], nil)), "\n")
}

func (p *progress) line(text string) {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
	fmt.Fprintln(p.out, text)
}

func (p *progress) show() {
	var running []string
	for _, pkg := range slices.Sorted(maps.Keys(p.running)) {
		if n := p.running[pkg]; n > 0 {
			running = append(running, fmt.Sprintf("%s (%d)", short(pkg), n))
		}
	}
	text := fmt.Sprintf("%v  %d of %d packages left, now %s", time.Since(p.start).Round(time.Second),
		p.packages-p.done, p.packages, cmp.Or(strings.Join(running, ", "), "compiling"))
	fmt.Fprintf(p.out, "\r\x1b[K%.79s", text)
	p.shown = true
}

func (p *progress) result(err error) error {
	took := time.Since(p.start).Round(time.Second)
	if err == nil && len(p.failed) == 0 {
		p.line(fmt.Sprintf("%d packages passed with %d tests in %v", p.done, p.passed, took))
		return nil
	}
	var names []string
	for _, of := range p.failed {
		if text := p.text(of); text != "" {
			p.line("\n=== " + of.String() + "\n" + text)
		}
		names = append(names, of.String())
	}
	slices.Sort(names)
	p.line("\nFAIL  " + strings.Join(slices.Compact(names), "\nFAIL  "))
	return fmt.Errorf("failed after %v", took)
}
