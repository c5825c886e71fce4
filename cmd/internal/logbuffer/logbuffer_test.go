package logbuffer_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"commerce/cmd/internal/logbuffer"
	"commerce/deploy/assert"
)

type reader struct {
	stalled chan struct{} // it stalls until this is closed; nil: it does not stall

	mu    sync.Mutex
	ended bool
	read  bytes.Buffer
}

func (r *reader) Write(lines []byte) (int, error) {
	if r.stalled != nil {
		<-r.stalled
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return 0, errors.New("broken pipe")
	}
	return r.read.Write(lines)
}

func (r *reader) end(is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = is
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read.String()
}

func report(to io.Writer, lost uint64) { fmt.Fprintf(to, "lost %d\n", lost) }

var line = strings.Repeat("x", 1<<10-1) + "\n"

func TestWriter_WritesAllLinesInOrder(t *testing.T) {
	t.Parallel()
	var r reader
	w := logbuffer.New(&r, report)
	var want strings.Builder
	for i := range 1000 {
		fmt.Fprintln(w, "line", i)
		fmt.Fprintln(&want, "line", i)
	}
	w.Close()
	assert.That(t, r.text() == want.String() && w.Lost() == 0, "lost %d of 1000 lines, read:\n%s", w.Lost(), r.text())
}

func TestWriter_LosesAndReportsWhatAStalledReaderDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := reader{stalled: make(chan struct{})}
		w := logbuffer.New(&r, report)
		const written = 5000
		for range written {
			io.WriteString(w, line)
		}
		lost := w.Lost()
		kept := written - lost
		assert.That(t, kept >= 1000 && kept <= 2100, "keeps %d lines of 1 KiB for a stalled reader", kept)
		close(r.stalled)
		synctest.Wait()
		io.WriteString(w, "next\n")
		w.Close()
		if got := r.text(); strings.Count(got, line) != int(written-lost) || strings.Count(got, "lost") != 1 ||
			!strings.Contains(got, fmt.Sprintf("\nlost %d\n", lost)) || !strings.HasSuffix(got, "\nnext\n") {
			t.Errorf("%d lines lost, and %d read, which end with %.200q", lost, strings.Count(got, "\n"), got[max(0, len(got)-200):])
		}
	})
}

func TestWriter_LosesAndReportsWhatAnEndedReaderRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r reader
		r.end(true)
		w := logbuffer.New(&r, report)
		for range 3 {
			io.WriteString(w, line)
			synctest.Wait()
		}
		assert.That(t, w.Lost() == 3 && w.Losing(), "%d lines count as lost, want 3", w.Lost())
		time.Sleep(time.Minute)
		assert.That(t, !w.Losing(), "a minute after the latest loss, lines are still being lost")
		r.end(false)
		io.WriteString(w, "next\n")
		w.Close()
		assert.Equal(t, r.text(), "next\nlost 3\n", "read")
	})
}

func TestWriter_ClosesAlthoughItsReaderStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := reader{stalled: make(chan struct{})}
		w := logbuffer.New(&r, report)
		io.WriteString(w, line)
		began := time.Now()
		w.Close()
		took := time.Since(began)
		assert.That(t, took != 0 && took <= time.Second, "takes %v", took)
		close(r.stalled)
	})
}
