// Package logbuffer keeps a log's reader from stopping the process that writes the log.
package logbuffer

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// size is how many bytes of lines wait for the reader.
	size = 1 << 20

	// flushTime is how long Close waits for the reader.
	flushTime = 250 * time.Millisecond
)

// Writer writes lines to another writer in the background, so that no caller waits for it. Lines
// that do not fit in the buffer, or that the other writer refuses, are lost and counted. It is safe
// for concurrent use.
type Writer struct {
	to     io.Writer
	report func(to io.Writer, lost uint64)
	ended  chan struct{}
	lost   atomic.Uint64 // lines
	latest atomic.Int64  // when the latest lines were lost; nanoseconds since 1970

	mu      sync.Mutex
	changed sync.Cond // waiting or closed
	waiting []byte    // whole lines
	closed  bool
}

// New returns a Writer to another writer. When lines were lost and the other writer accepts lines
// again, it calls report, which writes a line that says how many. The caller calls Close.
func New(to io.Writer, report func(to io.Writer, lost uint64)) *Writer {
	w := &Writer{to: to, report: report, ended: make(chan struct{})}
	w.changed.L = &w.mu
	go w.run()
	return w
}

// Write accepts one or more whole lines. It does not wait and does not fail.
func (w *Writer) Write(lines []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.waiting)+len(lines) > size {
		w.lose(lines)
		return len(lines), nil
	}
	w.waiting = append(w.waiting, lines...)
	w.changed.Signal()
	return len(lines), nil
}

// Lost returns how many lines were lost since New.
func (w *Writer) Lost() uint64 { return w.lost.Load() }

// Losing reports whether lines were lost within the last minute.
func (w *Writer) Losing() bool { return time.Since(time.Unix(0, w.latest.Load())) < time.Minute }

// Close waits until the lines are written, but only for a short time. Later lines are lost.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closed = true
	w.changed.Signal()
	w.mu.Unlock()
	select {
	case <-w.ended:
	case <-time.After(flushTime):
	}
	return nil
}

func (w *Writer) run() {
	defer close(w.ended)
	var reported uint64
	for lines := w.take(nil); len(lines) > 0; lines = w.take(lines[:0]) {
		if written, err := w.to.Write(lines); err != nil {
			w.lose(lines[written:])
		} else if lost := w.Lost(); lost > reported {
			w.report(w.to, lost-reported)
			reported = lost
		}
	}
}

// take waits for lines; none come once the Writer is closed. free is a buffer for the next ones.
func (w *Writer) take(free []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) == 0 && !w.closed {
		w.changed.Wait()
	}
	lines := w.waiting
	w.waiting = free
	return lines
}

func (w *Writer) lose(lines []byte) {
	w.lost.Add(uint64(bytes.Count(lines, []byte("\n"))))
	w.latest.Store(time.Now().UnixNano())
}
