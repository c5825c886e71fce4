package sample

import (
	"fmt"
	"strings"
)

// upsert returns a statement that inserts a row, or updates the other columns of the row
// with the same key. It does not update a row that already has these values. Its
// arguments are the columns of key, then the others.
func upsert(table, key, others string) string {
	columns, changed := strings.Split(key+", "+others, ", "), strings.Split(others, ", ")
	places, changes := make([]string, len(columns)), make([]string, len(changed))
	for i := range columns {
		places[i] = fmt.Sprintf("$%d", i+1)
	}
	for i, column := range changed {
		changes[i] = column + " = excluded." + column
	}
	return fmt.Sprintf(`INSERT INTO %s AS held (%s) VALUES (%s) ON CONFLICT (%s) DO UPDATE SET %s
		WHERE (held.%s) IS DISTINCT FROM (excluded.%s)`,
		table, strings.Join(columns, ", "), strings.Join(places, ", "), key, strings.Join(changes, ", "),
		strings.Join(changed, ", held."), strings.Join(changed, ", excluded."))
}
