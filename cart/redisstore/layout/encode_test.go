package layout

import (
	"testing"

	"commerce/cart"
	"commerce/deploy/assert"
)

// Orders are only written where lines before a kept one did not keep theirs.
func TestEncode_KeepsTheOrdersOfLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after string
		want  []int64
		lines string // that are written
	}{
		"nothing":                 {"123", []int64{2, 4, 6}, ""},
		"one more":                {"1234", []int64{2, 4, 6, 7}, "4"},
		"two more":                {"12345", []int64{2, 4, 6, 7, 8}, "45"},
		"one less":                {"13", []int64{2, 6}, ""},
		"none":                    {"", []int64{}, ""},
		"one edited to another":   {"193", []int64{2, 4, 6}, "9"},
		"all edited to others":    {"789", []int64{2, 4, 6}, "789"},
		"the last one edited":     {"128", []int64{2, 4, 6}, "8"},
		"one edited into a later": {"23", []int64{4, 6}, ""},
		"one in front":            {"9123", []int64{7, 8, 9, 10}, "9123"},
		"one in between":          {"1923", []int64{2, 7, 8, 9}, "923"},
		"the last one first":      {"312", []int64{6, 7, 8}, "12"},
		"the first two swapped":   {"213", []int64{4, 7, 8}, "13"},
		"reversed":                {"321", []int64{6, 7, 8}, "21"},
	} {
		before := Hash{Orders: []int64{2, 4, 6}}
		before.Lines = plainLines("123")
		var m Members
		orders := m.lines(&before, plainLines(test.after))
		assert.Equal(t, orders, test.want, "%s: orders", name)
		written := ""
		for i := 0; i < len(m.Set); i += 2 {
			written += m.Set[i].(string)
		}
		assert.Equal(t, written, test.lines, "%s: written lines", name)
	}
}

// plainLines are lines of which each has an ID of one digit.
func plainLines(ids string) (lines []cart.Line) {
	for _, id := range ids {
		lines = append(lines, cart.Line{ID: cart.LineID(string(id)), Quantity: 1})
	}
	return lines
}
