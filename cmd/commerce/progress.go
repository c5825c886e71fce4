package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a progress bar on a line of its own.
type progress struct {
	*progressbar.ProgressBar
	to io.Writer
}

// startProgress shows a bar, unless the total is 0. A log file would fill with bars, so a file
// or a pipe gets none.
func startProgress(to io.Writer, description string, total int64, options ...progressbar.Option) progress {
	if _, ok := to.(*os.File); total == 0 || ok && !isTerminal(to) {
		to = io.Discard
	}
	return progress{progressbar.NewOptions64(max(total, 1), append(options,
		progressbar.OptionSetWriter(to), progressbar.OptionSetDescription(description),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(200*time.Millisecond),
		progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth())...), to}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// end ends the line.
func (p progress) end() {
	_ = p.Exit()
	fmt.Fprintln(p.to)
}
