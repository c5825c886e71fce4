package redisstore

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	fastjson "github.com/go-json-experiment/json"

	"commerce/cart"
)

// encodeFields returns fields as a cart stores them: the size of their text in bytes,
// which the scripts add up, and a JSON list of names and values. "" for none.
func encodeFields(fields []cart.FieldValue) string {
	if len(fields) == 0 {
		return ""
	}
	pairs := make([][2]string, len(fields))
	for i, f := range fields {
		pairs[i] = [2]string{f.Name, f.Value}
	}
	body, _ := json.Marshal(pairs) // strings always marshal
	return strconv.FormatInt(cart.TextSize(fields), 10) + " " + string(body)
}

// decodeFields is the inverse of encodeFields; nil for "".
func decodeFields(s string) ([]cart.FieldValue, error) {
	if s == "" {
		return nil, nil
	}
	_, body, _ := strings.Cut(s, " ")
	var pairs [][2]string
	// Every read of a cart decodes them. encoding/json takes twice as long.
	if err := fastjson.Unmarshal([]byte(body), &pairs); err != nil {
		return nil, fmt.Errorf("%w: %w", errLayout, err)
	}
	fields := make([]cart.FieldValue, len(pairs))
	for i, p := range pairs {
		fields[i] = cart.FieldValue{Name: p[0], Value: p[1]}
	}
	return fields, nil
}
