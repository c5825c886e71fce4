package subscriptions

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
)

// Position is where a stream that was cut can continue.
type Position struct {
	After Cursor // of its last complete page; zero if it has none
	End   int64  // of its last complete page, in bytes. Drop what follows
}

// Errors of Resume.
var (
	ErrNotStream   = errors.New("not an export of subscriptions")
	ErrOtherFormat = errors.New("an export in another format")
	ErrOtherStore  = errors.New("an export of another store")
	ErrOtherHeader = errors.New("an export with other columns, from another release")
)

// Resume reads a store's stream that was cut anywhere, and returns where it can continue:
// after the last next line before which all lines are those of a stream. It reads all of r
// and holds little of it in memory.
//
// The position is zero if r is empty or was cut in its first page. If r has anything else
// and no next line of the store, the error is one of those above.
func Resume(r io.Reader, f Format, store int64) (Position, error) {
	layout := f.layout()
	lines := &lineReader{in: bufio.NewReaderSize(r, 256<<10), quotes: f == CSV}
	var at Position
	for n, end := 0, int64(0); ; n++ {
		line, err := lines.read()
		if errors.Is(err, io.EOF) {
			return at, nil
		}
		if err != nil {
			return Position{}, err
		}
		end += line.size
		after, ends, err := layout.parse(line, n, store)
		switch {
		case ends:
			at = Position{after, end}
		case at.End > 0 && err != nil: // a crash of the machine can leave anything
			return at, nil
		case err != nil:
			return Position{}, err
		case at.End == 0 && n > maxChanges+1: // longer than a page
			return Position{}, ErrNotStream
		}
	}
}

// layout is how the lines of a format look.
type layout struct {
	format Format
	header string   // "" if there is none
	kinds  []string // how the other lines begin, that of a next line first
	end    string   // of a next line, after the cursor
}

func (f Format) layout() layout {
	if f == CSV {
		kinds := []string{"next,", "row,,", "deleted,,"}
		const before = 2 // columns up to the cursor
		empty := strings.Repeat(",", len(csvColumns)-before)
		return layout{f, strings.Join(csvColumns, ",") + "\r\n", kinds, empty + "\r\n"}
	}
	return layout{f, "", []string{`{"next":"`, `{"subscription":{`, `{"deleted":{`}, "\"}\n"}
}

// parse returns the cursor of a complete next line. The error is why line n cannot be one of
// a stream of the store.
func (l layout) parse(line line, n int, store int64) (after Cursor, ends bool, err error) {
	if !l.has(line, n) {
		return Cursor{}, false, l.refusal(line, n)
	}
	text, ends := l.cursor(line)
	if !ends {
		return Cursor{}, false, nil
	}
	if after, ends = ParseCursor(text, store); !ends {
		err = ErrOtherStore
	}
	return after, ends, err
}

// has reports whether line n can be one of a stream, or the beginning of one.
func (l layout) has(line line, n int) bool {
	kinds := l.kinds
	if n == 0 && l.header != "" {
		kinds = []string{l.header}
	}
	return slices.ContainsFunc(kinds, func(kind string) bool {
		if line.complete || len(line.start) > len(kind) {
			return bytes.HasPrefix(line.start, []byte(kind))
		}
		return strings.HasPrefix(kind, string(line.start))
	})
}

func (l layout) refusal(line line, n int) error {
	other := NDJSON
	if l.format == NDJSON {
		other = CSV
	}
	switch {
	case n == 0 && other.layout().has(line, n):
		return ErrOtherFormat
	case n == 0 && l.format == CSV && bytes.HasPrefix(line.start, []byte("kind,cursor,")):
		return ErrOtherHeader
	}
	return ErrNotStream
}

// cursor returns that of a complete next line.
func (l layout) cursor(line line) (cursor string, ok bool) {
	rest, begins := bytes.CutPrefix(line.start, []byte(l.kinds[0]))
	text, ends := bytes.CutSuffix(rest, []byte(l.end))
	return string(text), begins && ends && line.complete
}

// lineReader reads lines that may be long. In CSV, a line break inside of quotes does not
// end one.
type lineReader struct {
	in     *bufio.Reader
	quotes bool
	start  []byte
}

// line is one line. Its start is valid until the next one is read.
type line struct {
	start    []byte // at most startOfLine bytes
	size     int64
	complete bool // it ends with a line break
}

// startOfLine is more than a next line or a header has.
const startOfLine = 4 << 10

// read returns io.EOF after the last line.
func (r *lineReader) read() (line, error) {
	r.start = r.start[:0]
	var size int64
	quoted := false
	for {
		part, err := r.in.ReadSlice('\n')
		size += int64(len(part))
		r.start = append(r.start, part[:min(len(part), startOfLine-len(r.start))]...)
		if r.quotes && bytes.Count(part, []byte{'"'})%2 == 1 {
			quoted = !quoted
		}
		switch {
		case errors.Is(err, io.EOF) && size > 0:
			return line{start: r.start, size: size}, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return line{}, err
		case err == nil && !quoted:
			return line{r.start, size, true}, nil
		}
	}
}
