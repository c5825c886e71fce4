package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// isPlain reports whether w is anything but a terminal that can move its cursor.
func isPlain(w io.Writer) bool {
	file, ok := w.(*os.File)
	return !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb"
}

// boldFor returns a function that makes text bold, if w is a terminal and the user has not asked
// for plain text (https://no-color.org).
func boldFor(w io.Writer) func(string) string {
	if isPlain(w) || os.Getenv("NO_COLOR") != "" {
		return func(text string) string { return text }
	}
	return func(text string) string { return "\x1b[1m" + text + "\x1b[0m" }
}

type progress struct {
	*progressbar.ProgressBar
	to io.Writer
}

func startProgress(to io.Writer, description string, total int) progress {
	to = visible(to)
	return progress{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(to), progressbar.OptionSetDescription(description),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(200*time.Millisecond),
		progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth()), to}
}

// visible discards progress that a person does not see: a log file would fill with it.
func visible(to io.Writer) io.Writer {
	if _, ok := to.(*os.File); ok && isPlain(to) {
		return io.Discard
	}
	return to
}

func (p progress) end() {
	_ = p.Exit()
	fmt.Fprintln(p.to)
}

// startWaiting shows each second for how long work of unknown size has been running. The returned
// function ends the line.
func startWaiting(to io.Writer, description string) (end func()) {
	to = visible(to)
	return background(context.Background(), func(ctx context.Context) {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for seconds := 0; ; {
			select {
			case <-tick.C:
				seconds++
				fmt.Fprintf(to, "\r%s: %d s", description, seconds)
			case <-ctx.Done():
				if seconds > 0 {
					fmt.Fprintln(to)
				}
				return
			}
		}
	})
}
