// Package jsonlog is a slog.Handler for lines of JSON that is faster than slog's own.
package jsonlog

import (
	"context"
	"io"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"
)

// Handler writes the same lines as slog.JSONHandler, in one Write call each. It writes
// records of plain texts and numbers itself, such as the line of each request, and leaves
// all others to slog.JSONHandler, which formats floats with encoding/json and keeps state for
// groups. With records that have no source line, this saves 5 % of the CPU time of
// GET /cart/count, measured with 64 connections in 40 interleaved turns. No log at all would
// save 7 %, so buffering is not worth late or lost lines.
type Handler struct {
	slog.Handler // for all other records
	out          *writer
	lines        sync.Pool // of *[]byte
}

// New returns a handler of records of at least a level.
func New(out io.Writer, level slog.Level) *Handler {
	w := &writer{to: out}
	return &Handler{Handler: slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}), out: w}
}

// writer keeps the lines of both handlers apart.
type writer struct {
	mu sync.Mutex
	to io.Writer
}

func (w *writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(line)
}

// Handle writes a record.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	buffer, ok := h.lines.Get().(*[]byte)
	if !ok {
		buffer = new([]byte)
	}
	defer h.lines.Put(buffer)
	line, ok := appendRecord((*buffer)[:0], &r)
	*buffer = line
	if !ok {
		return h.Handler.Handle(ctx, r)
	}
	_, err := h.out.Write(line)
	return err
}

// appendRecord appends the line of a record of plain attributes. ok is false for any other
// record.
func appendRecord(b []byte, r *slog.Record) (_ []byte, ok bool) {
	if year := r.Time.Year(); r.Time.IsZero() || year < 0 || year > 9999 || !plain(r.Message) {
		return b, false
	}
	b = append(b, `{"time":"`...)
	b = r.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","level":"`...)
	b = append(b, r.Level.String()...)
	b = append(b, `","msg":"`...)
	b = append(b, r.Message...)
	b = append(b, '"')
	ok = true
	r.Attrs(func(a slog.Attr) bool {
		b, ok = appendAttr(b, a)
		return ok
	})
	return append(b, "}\n"...), ok
}

func appendAttr(b []byte, a slog.Attr) (_ []byte, ok bool) {
	if !plain(a.Key) {
		return b, false
	}
	b = append(b, `,"`...)
	b = append(b, a.Key...)
	b = append(b, `":`...)
	switch v := a.Value; v.Kind() {
	case slog.KindString:
		b = append(b, '"')
		b = append(b, v.String()...)
		return append(b, '"'), plain(v.String())
	case slog.KindInt64:
		return strconv.AppendInt(b, v.Int64(), 10), true
	case slog.KindFloat64:
		f := v.Float64()
		size := math.Abs(f)
		// Other floats need an exponent, or are not numbers.
		return strconv.AppendFloat(b, f, 'f', -1, 64), size == 0 || size >= 1e-6 && size < 1e21
	}
	return b, false
}

// plain reports whether a text has only visible ASCII that JSON does not escape.
func plain(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}
