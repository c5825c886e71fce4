package ingest

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// readers append a JSON value, other than null, as the text of an SQL type. Their errors
// continue the sentence "<member>: …".
var readers = map[string]func(dst []byte, v jsontext.Value) ([]byte, error){
	"bigint":                   wholeNumber(64),
	"integer":                  wholeNumber(32),
	"smallint":                 wholeNumber(16),
	"text":                     readText,
	"boolean":                  readBoolean,
	"timestamp with time zone": readTime,
	"jsonb":                    func(dst []byte, v jsontext.Value) ([]byte, error) { return append(dst, v...), nil },
}

func wholeNumber(bits int) func([]byte, jsontext.Value) ([]byte, error) {
	return func(dst []byte, v jsontext.Value) ([]byte, error) {
		if v.Kind() != '0' {
			return dst, errors.New("must be a number")
		}
		_, err := strconv.ParseInt(string(v), 10, bits)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return dst, errors.New("must be a number of at most " + strconv.Itoa(bits) + " bits")
		case err != nil:
			return dst, errors.New("must be a whole number in digits")
		}
		return append(dst, v...), nil
	}
}

func readText(dst []byte, v jsontext.Value) ([]byte, error) {
	if v.Kind() != '"' {
		return dst, errors.New("must be a text")
	}
	dst, err := jsontext.AppendUnquote(dst, v)
	if err == nil && bytes.IndexByte(dst, 0) >= 0 {
		err = errors.New("must not contain U+0000")
	}
	return dst, err
}

func readBoolean(dst []byte, v jsontext.Value) ([]byte, error) {
	if k := v.Kind(); k != 't' && k != 'f' {
		return dst, errors.New("must be true or false")
	}
	return append(dst, v...), nil
}

// readTime returns the time in UTC. It truncates to microseconds, which Postgres would
// round to.
func readTime(dst []byte, v jsontext.Value) ([]byte, error) {
	var t time.Time
	text, err := readText(nil, v)
	if err == nil {
		err = t.UnmarshalText(text)
	}
	if err != nil {
		return dst, errors.New("must be a time as in RFC 3339, such as 2026-01-31T09:30:00Z")
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return dst, errors.New(aDate)
	}
	return t.AppendFormat(dst, "2006-01-02T15:04:05.999999Z"), nil
}

// appendCopied appends a value in the text format of COPY.
func appendCopied(dst, value []byte) []byte {
	if value == nil {
		return append(dst, `\N`...)
	}
	for _, b := range value {
		switch b {
		case '\\':
			dst = append(dst, `\\`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, b)
		}
	}
	return dst
}
