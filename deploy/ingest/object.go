package ingest

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// row is an object of a line, as texts of its table's columns, nil for null.
type row struct {
	table  *table
	path   string // such as plans[1], "" for the whole line
	values [][]byte
}

// line reads the objects of a line.
type line struct {
	tables map[*shape]*table
	rows   []row
	faults []Fault // without file and line
}

func (l *line) fault(path, text string) {
	l.faults = append(l.faults, Fault{Member: path, Text: text})
}

// read replaces l's rows and faults by those of a line of a file.
func (l *line) read(s *shape, text []byte) {
	l.rows, l.faults = l.rows[:0], nil
	switch text = bytes.TrimSpace(text); {
	case len(text) == 0:
		l.fault("", "is blank; each line must have an object")
	case text[0] != '{':
		l.fault("", "must be a JSON object")
	default:
		l.object(s, "", text, func(string) []byte { return nil }, 0)
	}
}

// object adds the rows of an object and of its parts. It returns the object's own row.
// inherited returns the value of a column of the parent.
func (l *line) object(s *shape, path string, text []byte, inherited func(string) []byte, index int) row {
	t := l.tables[s]
	r := row{t, path, make([][]byte, len(t.columns))}
	for i, c := range t.columns {
		if r.values[i] = c.standard; c.name == s.index {
			r.values[i] = strconv.AppendInt(nil, int64(index), 10)
		} else if of, ok := s.inherited[c.name]; ok {
			r.values[i] = inherited(of)
		}
	}
	l.rows = append(l.rows, r)
	if parts, ok := l.members(r, text); ok {
		for i, p := range s.parts {
			l.part(r, p, parts[i])
		}
	}
	return r
}

// members fills a row with the members that are columns, and returns the values of the
// parts. ok is false if the object cannot be read to its end.
func (l *line) members(r row, text []byte) (parts []jsontext.Value, ok bool) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	parts = make([]jsontext.Value, len(r.table.parts))
	_, err := decoder.ReadToken() // {
	for err == nil && decoder.PeekKind() != '}' {
		var name jsontext.Token
		var value jsontext.Value
		if name, err = decoder.ReadToken(); err != nil {
			break
		}
		member := name.String()
		if value, err = decoder.ReadValue(); err == nil {
			l.member(r, parts, member, value)
		}
	}
	if err == nil {
		_, err = decoder.ReadToken() // }
	}
	if err == nil {
		if _, more := decoder.ReadToken(); more != io.EOF {
			err = errors.New("there is more than one object on the line")
		}
	}
	if err != nil {
		l.unreadable(r.path, err)
	}
	return parts, err == nil
}

// unreadable reports JSON that cannot be read.
func (l *line) unreadable(path string, err error) {
	text := strings.TrimPrefix(err.Error(), "jsontext: ")
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			l.fault(join(path, dotted(syntax.JSONPointer)), "is there twice")
			return
		}
		text = strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")
		path = join(path, dotted(syntax.JSONPointer))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		path, text = "", "the line ends too early"
	}
	l.fault(path, "is not valid JSON: "+text)
}

// member stores one member of an object.
func (l *line) member(r row, parts []jsontext.Value, name string, value jsontext.Value) {
	for i, p := range r.table.parts {
		if p.member == name {
			parts[i] = value.Clone() // the decoder overwrites it
			return
		}
	}
	at := r.table.find(name)
	if at < 0 || !r.table.columns[at].member {
		l.fault(join(r.path, printable(name)), "is not a known member")
		return
	}
	if r.values[at] = nil; value.Kind() == 'n' {
		return
	}
	text, err := readers[r.table.columns[at].kind](nil, value)
	if err != nil {
		l.fault(join(r.path, name), err.Error())
		return
	}
	r.values[at] = text
}

// part adds the rows of a part of a row. Its value is nil if the member is missing.
func (l *line) part(r row, p part, value jsontext.Value) {
	path := join(r.path, p.member)
	switch {
	case value == nil || value.Kind() == 'n':
		if p.required {
			l.fault(path, "is required")
		}
	case p.list && value.Kind() != '[':
		l.fault(path, "must be a list of objects")
	case p.list:
		l.list(r, p, path, value)
	case value.Kind() != '{':
		l.fault(path, "must be an object")
	default:
		child := l.object(p.shape, path, value, r.value, 0)
		for column, of := range p.lifted {
			r.values[r.table.find(column)] = child.value(of)
		}
	}
}

func (l *line) list(r row, p part, path string, value jsontext.Value) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(value))
	_, _ = decoder.ReadToken() // the list was read once, so it has no errors
	for i := 0; decoder.PeekKind() != ']'; i++ {
		element, err := decoder.ReadValue()
		path := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case err != nil:
			l.unreadable(path, err)
			return
		case element.Kind() != '{':
			l.fault(path, "must be an object")
		default:
			l.object(p.shape, path, element.Clone(), r.value, i)
		}
	}
}

// value returns the value of a column.
func (r row) value(column string) []byte { return r.values[r.table.find(column)] }

func join(path, member string) string {
	switch {
	case path == "":
		return member
	case member == "":
		return path
	}
	return path + "." + member
}

// dotted turns /plans/1/price into plans[1].price.
func dotted(p jsontext.Pointer) string {
	path := ""
	for name := range p.Tokens() {
		if _, err := strconv.ParseUint(name, 10, 64); err == nil && path != "" {
			path += "[" + name + "]"
		} else {
			path = join(path, printable(name))
		}
	}
	return path
}

// printable returns the name of a member so that it is safe and short enough for a
// terminal.
func printable(name string) string {
	const longest = 100
	if quoted := strconv.QuoteToGraphic(name); quoted != `"`+name+`"` {
		name = quoted
	}
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + "…"
	}
	return name
}
