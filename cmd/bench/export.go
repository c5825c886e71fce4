package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// format is a format of exports. Lines are recognized by how they begin.
type format struct {
	name, accept string
	row, next    string // beginnings of lines with a row, and with a cursor
}

var (
	ndjson = format{"NDJSON", "application/x-ndjson", `{"subscription":`, `{"next":"`}
	csv    = format{"CSV", "text/csv", "row,", "next,"}
)

// longestLine is above the length of any line: metadata has up to 16 KiB before escaping.
const longestLine = 256 << 10

// cursor returns the cursor in a line that has one.
func (f format) cursor(line []byte) (cursor string, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(f.next))
	if end := bytes.IndexAny(rest, `",`); ok && end > 0 {
		return string(rest[:end]), true
	}
	return "", false
}

// export reads all rows of a store from streams of its changes.
type export struct {
	format
	service   *listBench
	transport *http.Transport
	head      string // the last cursor

	lines *bufio.Reader // of the current stream; nil for none
	stop  func()        // ends it
}

func newExport(b *listBench, f format) *export {
	return &export{format: f, service: b, transport: newTransport(1)}
}

func (e *export) close() {
	e.pause()
	e.transport.CloseIdleConnections()
}

// pause ends the current stream. The next read goes on after its last cursor.
func (e *export) pause() {
	if e.lines != nil {
		e.stop()
		e.lines = nil
	}
}

// read reads rows until a time, at least up to the first cursor. The next call goes on
// after them. After the last row it goes on with the first one.
func (e *export) read(ctx context.Context, until time.Time) (rows int, err error) {
	for rows == 0 || time.Now().Before(until) {
		n, ended, err := e.stream(ctx, until)
		if err != nil {
			return rows, err
		}
		if ended {
			e.head = ""
		}
		rows += n
	}
	return rows, nil
}

// all reads all rows in one stream.
func (e *export) all(ctx context.Context) (rows int, err error) {
	e.pause()
	e.head = ""
	rows, _, err = e.stream(ctx, time.Now().Add(time.Hour))
	if err == nil && rows != e.service.rows {
		err = fmt.Errorf("an export has %d rows of %d", rows, e.service.rows)
	}
	return rows, err
}

// stream reads the current stream, or a new one from head on, up to its end or the first
// cursor after a time.
func (e *export) stream(ctx context.Context, until time.Time) (rows int, ended bool, err error) {
	if e.lines == nil {
		if err := e.open(ctx); err != nil {
			return 0, false, err
		}
	}
	for unconfirmed := 0; ; {
		line, err := e.lines.ReadSlice('\n')
		cursor, ok := e.cursor(line)
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && unconfirmed == 0:
			e.pause()
			return rows, true, nil
		case err != nil:
			return rows, false, fmt.Errorf("%s, after %d rows: %w", e.name, rows, err)
		case bytes.HasPrefix(line, []byte(e.row)):
			unconfirmed++
		case ok:
			rows, unconfirmed, e.head = rows+unconfirmed, 0, cursor
			if time.Now().After(until) {
				return rows, false, nil
			}
		}
	}
}

// open requests a stream. It waits for a free slot: the service may still be about to end
// the stream before.
func (e *export) open(ctx context.Context) error {
	address := e.service.url() + "/changes"
	if e.head != "" {
		address += "?after=" + url.QueryEscape(e.head)
	}
	r, err := newRequest(http.MethodGet, address, e.service.header())
	if err != nil {
		return err
	}
	r.Header.Set("Accept", e.accept)
	ctx, cancel := context.WithCancel(ctx)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		response, err := e.transport.RoundTrip(r.WithContext(ctx))
		if err != nil {
			cancel()
			return err
		}
		if response.StatusCode == http.StatusOK {
			e.lines = bufio.NewReaderSize(response.Body, longestLine)
			e.stop = func() { cancel(); _ = response.Body.Close() }
			return nil
		}
		err = errors.Join(fmt.Errorf("%s: %s", e.name, response.Status), discard(response.Body))
		if !unavailable(response.StatusCode) || time.Since(began) > 15*time.Second {
			cancel()
			return err
		}
	}
}
