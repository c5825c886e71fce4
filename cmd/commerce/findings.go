package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"commerce/cmd/internal/cli"
	"commerce/deploy/inspect"
)

// findingLine is a line of output. It can be about several servers.
type findingLine struct {
	level           inspect.Level
	server, message string
	more            int // servers, beyond the first
}

// printFindings prints one line for each finding, the worst ones first, and a summary. Equal
// findings of several servers share a line, and so do the checks of a server that found no
// problem. In a terminal, it wraps long messages.
func printFindings(out cli.Output, findings []inspect.Finding) error {
	lines := linesOf(findings)
	levels, servers := 0, 0
	for _, l := range lines {
		levels, servers = max(levels, len(l.level)), max(servers, utf8.RuneCountInString(l.server))
	}
	var text strings.Builder
	for _, l := range lines {
		cli.PrintWrapped(&text, lineWidth(out), fmt.Sprintf("%-*s  %-*s  ", levels, l.level, servers, l.server), l.message)
	}
	var counts []string
	for _, level := range inspect.Levels() {
		n := len(slices.DeleteFunc(slices.Clone(findings), func(f inspect.Finding) bool { return f.Level != level }))
		counts = append(counts, fmt.Sprintf("%d %s", n, level))
	}
	fmt.Fprintf(&text, "\n%s\n", strings.Join(counts, ", "))
	_, err := io.WriteString(out, text.String())
	return err
}

// linesOf returns a line for each finding that is not OK, and then one for each server that lists
// the checks that found no problem. Lines that differ only in their server are merged.
func linesOf(findings []inspect.Finding) (lines []findingLine) {
	var wrong, right []findingLine
	for _, f := range findings {
		kind, check, _ := strings.Cut(f.Code, "_")
		l := findingLine{level: f.Level, server: f.Server, message: f.Message + " Change: " + f.Setting}
		if strings.Contains(f.Server, ":") {
			l.server = kind + " " + f.Server
		}
		if f.Level == inspect.Unknown {
			l.message = f.Message + " Look up: " + f.Setting
		}
		if f.Level != inspect.OK {
			wrong = append(wrong, l)
			continue
		}
		l.message = strings.ReplaceAll(check, "_", " ")
		if at := slices.IndexFunc(right, func(r findingLine) bool { return r.server == l.server }); at >= 0 {
			right[at].message += ", " + l.message
		} else {
			right = append(right, l)
		}
	}
	for _, l := range append(wrong, right...) {
		if at := slices.IndexFunc(lines, func(k findingLine) bool { return k.level == l.level && k.message == l.message }); at >= 0 {
			lines[at].more++
		} else {
			lines = append(lines, l)
		}
	}
	for i, l := range lines {
		if l.more > 0 {
			lines[i].server += fmt.Sprintf(" and %d more", l.more)
		}
	}
	return lines
}

// lineWidth returns the width of the terminal, or no limit for a file or a pipe.
func lineWidth(out cli.Output) int {
	const narrow = 60 // columns; less leaves no room for a message
	if file, ok := out.Writer.(*os.File); ok && isTerminal(file) {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width >= narrow {
			return width
		}
	}
	return math.MaxInt
}
