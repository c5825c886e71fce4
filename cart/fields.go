package cart

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// textSize is the bytes of text that fields take of a line's and a cart's limit:
// the answers, not the names, which are the merchant's.
func textSize(fields []FieldValue) int64 {
	var n int64
	for _, f := range fields {
		n += int64(len(f.Value))
	}
	return n
}

// encodeFields writes fields as a cart keeps them: the size of their text, which
// the scripts add up, and a JSON list of names and values. "" for none.
func encodeFields(fields []FieldValue) string {
	if len(fields) == 0 {
		return ""
	}
	pairs := make([][2]string, len(fields))
	for i, f := range fields {
		pairs[i] = [2]string{f.Name, f.Value}
	}
	body, _ := json.Marshal(pairs) // strings always marshal
	return strconv.FormatInt(textSize(fields), 10) + " " + string(body)
}

// decodeFields reads what encodeFields wrote; nil for "".
func decodeFields(s string) ([]FieldValue, error) {
	if s == "" {
		return nil, nil
	}
	_, body, _ := strings.Cut(s, " ")
	var pairs [][2]string
	if err := json.Unmarshal([]byte(body), &pairs); err != nil {
		return nil, fmt.Errorf("%w: %w", errLayout, err)
	}
	fields := make([]FieldValue, len(pairs))
	for i, p := range pairs {
		fields[i] = FieldValue{Name: p[0], Value: p[1]}
	}
	return fields, nil
}
