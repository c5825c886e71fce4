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

// printFindings prints one line for each finding, the worst ones first, and a summary. Equal
// findings of several servers share a line, and so do the checks of a server that found no
// problem. In a terminal, it wraps long messages.
func printFindings(out cli.Output, findings []inspect.Finding) error {
	lines := together(append(wrongLines(findings), rightLines(findings)...))
	levels, servers := 0, 0
	for _, l := range lines {
		levels, servers = max(levels, len(l.level)), max(servers, utf8.RuneCountInString(l.server))
	}
	var text strings.Builder
	for _, l := range lines {
		cli.PrintWrapped(&text, lineWidth(out), fmt.Sprintf("%-*s  %-*s  ", levels, l.level, servers, l.server), l.message)
	}
	fmt.Fprintf(&text, "\n%s\n", summarize(findings))
	_, err := io.WriteString(out, text.String())
	return err
}

// findingLine is a line of output.
type findingLine struct{ level, server, message string }

// wrongLines returns a line for each finding that is not OK.
func wrongLines(findings []inspect.Finding) []findingLine {
	var lines []findingLine
	for _, f := range findings {
		if f.Level == inspect.OK {
			continue
		}
		do := "Change: "
		if f.Level == inspect.Unknown {
			do = "Look up: "
		}
		lines = append(lines, findingLine{string(f.Level), label(f), f.Message + " " + do + f.Setting})
	}
	return lines
}

// label returns the server of a finding, after the kind of server.
func label(f inspect.Finding) string {
	what, _, _ := strings.Cut(f.Code, "_")
	if strings.Contains(f.Server, ":") {
		return what + " " + f.Server
	}
	return f.Server
}

// rightLines returns a line for each server that lists the checks that found no problem.
func rightLines(findings []inspect.Finding) []findingLine {
	var lines []findingLine
	for _, f := range findings {
		if f.Level != inspect.OK {
			continue
		}
		_, check, _ := strings.Cut(f.Code, "_")
		check = strings.ReplaceAll(check, "_", " ")
		at := slices.IndexFunc(lines, func(l findingLine) bool { return l.server == label(f) })
		if at < 0 {
			lines = append(lines, findingLine{string(inspect.OK), label(f), check})
		} else {
			lines[at].message += ", " + check
		}
	}
	return lines
}

// together merges lines that differ only in their server.
func together(lines []findingLine) []findingLine {
	var kept []findingLine
	var more []int // servers of each line, beyond the first
	for _, l := range lines {
		at := slices.IndexFunc(kept, func(k findingLine) bool { return k.level == l.level && k.message == l.message })
		if at < 0 {
			kept, more = append(kept, l), append(more, 0)
		} else {
			more[at]++
		}
	}
	for i, n := range more {
		if n > 0 {
			kept[i].server += fmt.Sprintf(" and %d more", n)
		}
	}
	return kept
}

// summarize counts the findings of each level.
func summarize(findings []inspect.Finding) string {
	counts := map[inspect.Level]int{}
	for _, f := range findings {
		counts[f.Level]++
	}
	var parts []string
	for _, level := range inspect.Levels() {
		parts = append(parts, fmt.Sprintf("%d %s", counts[level], level))
	}
	return strings.Join(parts, ", ")
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
