package sample

import (
	"fmt"
	"strings"
)

// upsert inserts a row or, where its key is taken, gives that row the other
// columns; one that has them already is not updated. The arguments are the key's
// columns, then the others.
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
