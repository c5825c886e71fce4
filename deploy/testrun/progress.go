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

// progress collects the events of a run.
type progress struct {
	out      io.Writer
	start    time.Time
	packages int // with tests
	done     int
	passed   int                            // tests
	running  map[string]map[string]bool     // tests by package
	output   map[[2]string]*strings.Builder // of what may still fail, by package and test
	failed   [][2]string                    // packages and tests, in the order of their ends
	shown    bool                           // whether the terminal's last line is the progress
}

func newProgress(out io.Writer, packages int) *progress {
	return &progress{
		out: out, start: time.Now(), packages: packages,
		running: map[string]map[string]bool{}, output: map[[2]string]*strings.Builder{},
	}
}

func (p *progress) add(e event) {
	of := [2]string{cmp.Or(e.Package, e.ImportPath), e.Test}
	switch e.Action {
	case "start":
		p.running[e.Package] = map[string]bool{}
	case "run", "cont":
		p.running[e.Package][e.Test] = true
	case "pause":
		delete(p.running[e.Package], e.Test)
	case "output", "build-output":
		if p.output[of] == nil {
			p.output[of] = &strings.Builder{}
		}
		p.output[of].WriteString(e.Output)
	case "build-fail":
		p.failed = append(p.failed, of)
	case "pass", "skip", "fail":
		p.end(e, of)
	}
}

func (p *progress) end(e event, of [2]string) {
	if e.Action == "fail" {
		p.failed = append(p.failed, of)
	} else {
		delete(p.output, of)
	}
	if e.Test != "" {
		delete(p.running[e.Package], e.Test)
		if e.Action == "pass" {
			p.passed++
		}
		return
	}
	delete(p.running, e.Package)
	if e.Action == "skip" { // no tests
		return
	}
	p.done++
	verdict := "ok  "
	if e.Action == "fail" {
		verdict = "FAIL"
		p.failed = append(p.failed, p.unfinished(e.Package)...)
	}
	p.line(fmt.Sprintf("%s  %-40s %6.1fs", verdict, short(e.Package), e.Elapsed))
}

// unfinished returns the tests of a package that have printed something and have not ended. A
// panic, a timeout or a signal ends the package without them.
func (p *progress) unfinished(pkg string) (tests [][2]string) {
	for of, output := range p.output {
		if of[0] == pkg && of[1] != "" && !slices.Contains(p.failed, of) && withoutVerdicts(output.String()) != "" {
			tests = append(tests, of)
		}
	}
	slices.SortFunc(tests, func(a, b [2]string) int { return strings.Compare(a[1], b[1]) })
	return tests
}

// short is a package's path within its module.
func short(pkg string) string { return strings.TrimPrefix(pkg, "commerce/") }

// line prints a line over the progress.
func (p *progress) line(text string) {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
	fmt.Fprintln(p.out, text)
}

// show writes what runs and what is left in the terminal's last line.
func (p *progress) show() {
	var running []string
	for _, pkg := range slices.Sorted(maps.Keys(p.running)) {
		if n := len(p.running[pkg]); n > 0 {
			running = append(running, fmt.Sprintf("%s (%d)", short(pkg), n))
		}
	}
	text := fmt.Sprintf("%v  %d of %d packages left, now %s", time.Since(p.start).Round(time.Second),
		p.packages-p.done, p.packages, cmp.Or(strings.Join(running, ", "), "compiling"))
	fmt.Fprintf(p.out, "\r\x1b[K%.79s", text)
	p.shown = true
}

// result prints the output of what failed, and returns an error if anything did.
func (p *progress) result(err error) error {
	took := time.Since(p.start).Round(time.Second)
	if err == nil && len(p.failed) == 0 {
		p.line(fmt.Sprintf("%d packages passed with %d tests in %v", p.done, p.passed, took))
		return nil
	}
	var names []string
	for _, of := range p.failed {
		name, text := strings.TrimSpace(short(of[0])+" "+of[1]), ""
		if p.output[of] != nil {
			text = withoutVerdicts(p.output[of].String())
		}
		if text != "" {
			p.line("\n=== " + name + "\n" + text)
		}
		if text != "" || of[1] != "" || !p.failedTestOf(of[0]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	p.line("\nFAIL  " + strings.Join(slices.Compact(names), "\nFAIL  "))
	return fmt.Errorf("failed after %v", took)
}

// failedTestOf reports whether a test of a package has failed.
func (p *progress) failedTestOf(pkg string) bool {
	return slices.ContainsFunc(p.failed, func(of [2]string) bool { return of[0] == pkg && of[1] != "" })
}

// verdicts are lines by which go test ends a package, or begins a test.
var verdicts = regexp.MustCompile(`(?m)^(FAIL|FAIL\t.*|exit status \d+|=== (RUN|PAUSE|CONT|NAME) .*)\n`)

func withoutVerdicts(output string) string {
	return strings.TrimSuffix(verdicts.ReplaceAllString(output, ""), "\n")
}
