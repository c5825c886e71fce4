package suite

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// TableOf reads CSV with at least one row.
func TableOf(t *testing.T, text string) [][]string {
	t.Helper()
	table, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	assert.Require(t, err == nil && len(table) >= 2, "%d rows, %v", len(table), err)
	return table
}

func Flatten(t *testing.T, values map[string]string, prefix string, object json.RawMessage) {
	t.Helper()
	var members map[string]json.RawMessage
	assert.NoError(t, json.Unmarshal(object, &members))
	for name, value := range members {
		switch text := ""; {
		case string(value) == "null":
		case value[0] == '{' && name != "metadata":
			Flatten(t, values, prefix+name+".", value)
		case json.Unmarshal(value, &text) == nil:
			values[prefix+name] = text
		default:
			values[prefix+name] = string(value)
		}
	}
}
