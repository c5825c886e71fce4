package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// isTerminal reports whether a person reads w.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// isPlain reports whether w is anything but a terminal that can move its cursor.
func isPlain(w io.Writer) bool {
	return !isTerminal(w) || os.Getenv("TERM") == "dumb"
}

// boldFor returns a function that makes text bold, if w is a terminal and the user has not asked
// for plain text (https://no-color.org).
func boldFor(w io.Writer) func(string) string {
	if isPlain(w) || os.Getenv("NO_COLOR") != "" {
		return func(text string) string { return text }
	}
	return func(text string) string { return "\x1b[1m" + text + "\x1b[0m" }
}
