package cart

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
)

// LineID names a line by what it is, so that the same product with the same plan
// and fields is the same line wherever it is added:
//
//	42                  a plain product
//	42.p41              with plan 41
//	42.f<digest>        with fields
//	42.p41.f<digest>    with both
//
// It is also the line's member in the cart's hash, and sorts apart from the
// cart's own members, none of which begins with a digit.
type LineID string

var lineIDShape = regexp.MustCompile(`^[1-9][0-9]{0,18}(\.p[1-9][0-9]{0,18})?(\.f[A-Za-z0-9_-]{16})?$`)

// NewLineID makes the id. Plan 0 is none; fields must be sorted by name.
func NewLineID(product, plan int64, fields []FieldValue) LineID {
	id := strconv.AppendInt(make([]byte, 0, 32), product, 10)
	if plan != 0 {
		id = strconv.AppendInt(append(id, ".p"...), plan, 10)
	}
	if len(fields) > 0 {
		id = append(append(id, ".f"...), fieldsDigest(fields)...)
	}
	return LineID(id)
}

// ParseLineID reads what a client sent as a line's id. ok is false for anything that
// cannot be one, so that no other text reaches a script.
func ParseLineID(s string) (LineID, bool) {
	if len(s) > 64 || !lineIDShape.MatchString(s) {
		return "", false
	}
	return LineID(s), true
}

// Product is the id of the line's product.
func (id LineID) Product() int64 {
	digits, _, _ := strings.Cut(string(id), ".")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

// Plan is the id of the line's plan, 0 when it has none.
func (id LineID) Plan() int64 {
	_, rest, _ := strings.Cut(string(id), ".")
	if !strings.HasPrefix(rest, "p") {
		return 0
	}
	digits, _, _ := strings.Cut(rest[1:], ".")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

// fieldsDigest is 96 bits of SHA-256 over names and values, each with its length
// before it, so that no two answers run together.
func fieldsDigest(fields []FieldValue) string {
	h := sha256.New()
	for _, f := range fields {
		for _, text := range [2]string{f.Name, f.Value} {
			h.Write(strconv.AppendInt(nil, int64(len(text)), 10))
			h.Write([]byte{':'})
			h.Write([]byte(text))
		}
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}
