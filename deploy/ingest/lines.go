package ingest

import (
	"bufio"
	"errors"
	"io"
)

const maxLine = 1 << 20 // bytes, without the line break

// errLong means that a line has more than maxLine bytes. The line was skipped.
var errLong = errors.New("has more than 1 MiB")

// lines reads the lines of a file.
type lines struct {
	from *bufio.Reader
	read int64 // bytes
}

func newLines(r io.Reader) *lines { return &lines{from: bufio.NewReaderSize(r, maxLine+2)} }

// next returns the next line, without its line break. It is valid until the next call.
// The error after the last line is io.EOF. A line break at the end of the file does not
// begin another line.
func (l *lines) next() ([]byte, error) {
	text, err := l.from.ReadSlice('\n')
	l.read += int64(len(text))
	long := errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) {
		var rest []byte
		rest, err = l.from.ReadSlice('\n')
		l.read += int64(len(rest))
	}
	switch {
	case err == io.EOF && len(text) > 0, err == nil:
	default:
		return nil, err
	}
	if n := len(text); n > 0 && text[n-1] == '\n' {
		text = text[:n-1]
	}
	if long || len(text) > maxLine {
		return nil, errLong
	}
	return text, nil
}
