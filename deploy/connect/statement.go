package connect

import "strings"

// StatementName returns the name in the comment with which the SQL texts of this program
// begin, as in "/* products */ SELECT …". pg_stat_activity shows it too. ok is false for a text
// without one, such as those of pgx itself.
func StatementName(sql string) (name string, ok bool) {
	text, ok := strings.CutPrefix(sql, "/* ")
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(text, " */")
	return name, ok
}
