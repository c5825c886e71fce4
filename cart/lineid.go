package cart

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"time"

	"commerce/auth/problem"
)

// LineID identifies a line by its content, so that adding the same product with the same
// plan and fields again gives the same line:
//
//	42                  a plain product
//	42.p41              with plan 41
//	42.f<digest>        with fields
//	42.p41.f<digest>    with both
//
// It is also the line's field name in the cart's Redis hash, where only lines begin with a digit.
type LineID string

var lineIDShape = regexp.MustCompile(`^[1-9][0-9]{0,18}(\.p[1-9][0-9]{0,18})?(\.f[A-Za-z0-9_-]{16})?$`)

// NewLineID returns the ID of a line. Plan 0 is none; fields must be sorted by name.
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

// ParseLineID parses a line's ID that a client sent. ok is false for any other text, which
// is never taken for a line's ID.
func ParseLineID(s string) (LineID, bool) {
	if len(s) > 64 || !lineIDShape.MatchString(s) {
		return "", false
	}
	return LineID(s), true
}

func (id LineID) Product() int64 {
	digits, _, _ := strings.Cut(string(id), ".")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

// Plan returns the ID of the line's plan, 0 when it has none.
func (id LineID) Plan() int64 {
	_, rest, found := strings.Cut(string(id), ".p")
	if !found { // ParseInt would allocate an error
		return 0
	}
	digits, _, _ := strings.Cut(rest, ".")
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

// fieldsDigest returns 96 bits of SHA-256 over names and values. Each is prefixed with its
// length, so that different fields never give the same input.
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

// Item is the ID of a line with the same product and plan, and without fields.
func (id LineID) Item() string { return string(NewLineID(id.Product(), id.Plan(), nil)) }

// Item is how a request names a line: by its ID, or by that of a product of which the cart holds exactly one line.
type Item struct {
	ID      LineID // "" if no line can have the requested ID
	OnlyIDs bool   // in lists, a product's ID names nothing
}

// in returns the index of the line that an item names, or -1 and why there is none: item_not_found, or ambiguous_item
// if the product has several.
func (i Item) in(c *Cell, now time.Time) (at int, none *Refusal) {
	notFound := &Refusal{Code: problem.ItemNotFound}
	if at = c.place(i.ID); at >= 0 {
		return at, nil
	}
	if i.OnlyIDs || !i.ID.isBare() || c.Removed.Has(i.ID, now) {
		return -1, notFound
	}
	switch lines := c.ofProduct(i.ID); len(lines) {
	case 0:
		return -1, notFound
	case 1:
		return c.place(lines[0].ID), nil
	}
	return -1, &Refusal{Code: AmbiguousItem}
}

// isBare reports whether the ID is that of its product.
func (id LineID) isBare() bool { return id != "" && strings.IndexByte(string(id), '.') < 0 }

// ofProduct returns the lines of a line's product.
func (c *Cart) ofProduct(id LineID) (lines []Line) {
	product := id.productText()
	for _, l := range c.Lines {
		if l.ID.productText() == product {
			lines = append(lines, l)
		}
	}
	return lines
}

func (id LineID) productText() string {
	product, _, _ := strings.Cut(string(id), ".")
	return product
}
