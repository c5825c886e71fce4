package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A COPY has at most this many lines, or bytes and one line more. Each is a transaction of
// its own, because a long one would delay the readers of changes.
const (
	copyLines = 10_000
	copyBytes = 4 << 20
)

// stage copies the rows of files into temporary tables.
type stage struct {
	conn   *pgx.Conn
	line   line
	copies map[*table]*copied
	faults *Faults
}

// copied has the rows of one table that were not sent yet.
type copied struct {
	text  bytes.Buffer
	lines []int64 // of the rows
}

func newStage(conn *pgx.Conn, tables map[*shape]*table, faults *Faults) *stage {
	s := &stage{conn: conn, line: line{tables: tables}, copies: map[*table]*copied{}, faults: faults}
	for _, t := range tables {
		s.copies[t] = &copied{}
	}
	return s
}

// create makes an empty temporary table with the types of a table. It has no constraints.
func (t *table) create(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, fmt.Sprintf("CREATE TEMPORARY TABLE %s AS SELECT 0::bigint AS line, ''::text AS path, %s FROM %s WITH NO DATA",
		t.staged(), strings.Join(t.names(""), ", "), t.table))
	if err != nil {
		return fmt.Errorf("create %s: %w", t.staged(), err)
	}
	return nil
}

// all stages all files and returns the number of lines of each.
func (s *stage) all(ctx context.Context, files []File, progress func(bytes int64)) ([]int64, error) {
	lines := make([]int64, len(files))
	for i, f := range files {
		var err error
		if lines[i], err = s.load(ctx, f, progress); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// load stages all lines of a file and returns their number. It reports faults of lines,
// and leaves these lines out.
func (s *stage) load(ctx context.Context, f File, progress func(bytes int64)) (int64, error) {
	all := newLines(f.From)
	bytes, pending := int64(0), 0
	for number := int64(1); ; number++ {
		text, err := all.next()
		if err == io.EOF {
			if number == 1 {
				s.fault(f, 1, "", "the file is empty")
			}
			progress(all.read - bytes)
			return number - 1, s.send(ctx, f)
		}
		if errors.Is(err, errLong) {
			s.fault(f, number, "", err.Error())
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", f.Name, err)
		}
		s.add(f, number, text)
		if pending++; pending == copyLines || all.read-bytes >= copyBytes {
			if err := s.send(ctx, f); err != nil {
				return 0, err
			}
			progress(all.read - bytes)
			bytes, pending = all.read, 0
		}
	}
}

// fault reports a line that is not staged.
func (s *stage) fault(f File, number int64, member, text string) {
	s.faults.ReferencesSkipped = true
	s.faults.add(Fault{f.Name, number, member, text})
}

func (s *stage) add(f File, number int64, text []byte) {
	s.line.read(f.shape, text)
	for _, fault := range s.line.faults {
		s.fault(f, number, fault.Member, fault.Text)
	}
	if len(s.line.faults) > 0 {
		return
	}
	for _, r := range s.line.rows {
		c := s.copies[r.table]
		c.lines = append(c.lines, number)
		b := strconv.AppendInt(c.text.AvailableBuffer(), number, 10)
		b = append(append(b, '\t'), r.path...)
		for _, v := range r.values {
			b = appendCopied(append(b, '\t'), v)
		}
		c.text.Write(append(b, '\n'))
	}
}

// send copies what is pending.
func (s *stage) send(ctx context.Context, f File) error {
	for _, sh := range f.shape.all() {
		t := s.line.tables[sh]
		c := s.copies[t]
		if len(c.lines) == 0 {
			continue
		}
		sql := fmt.Sprintf("COPY %s FROM STDIN", t.staged())
		_, err := s.conn.PgConn().CopyFrom(ctx, &c.text, sql)
		if err != nil && !s.refused(f, c, err) {
			return fmt.Errorf("copy to %s: %w", t.staged(), err)
		}
		c.text.Reset()
		c.lines = c.lines[:0]
	}
	return nil
}

// copyPlace finds the row and the column in the context of an error of COPY.
var copyPlace = regexp.MustCompile(`(?m)^COPY \w+, line (\d+)(?:, column (\w+))?`)

// refused reports a value that its column's type does not accept, such as a number in jsonb
// that is too large, as a fault of its line. ok is false for any other error.
func (s *stage) refused(f File, c *copied, err error) (ok bool) {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Code, "22") && !strings.HasPrefix(refused.Code, "54") {
		return false
	}
	place := copyPlace.FindStringSubmatch(refused.Where)
	if place == nil {
		return false
	}
	n, err := strconv.Atoi(place[1])
	if err != nil || n < 1 || n > len(c.lines) {
		return false
	}
	s.fault(f, c.lines[n-1], place[2], "cannot be stored: "+refused.Message)
	return true
}
