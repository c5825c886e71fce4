package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// table is a table of the database as an import sees it.
type table struct {
	*shape
	columns []column // without the store
	rules   []rule
}

type column struct {
	name, kind string // kind is the SQL type
	notNull    bool
	standard   []byte // the default as text, nil for none
	member     bool   // objects have it as a member
}

// rule is a constraint of the table that a row can break by itself.
type rule struct {
	broken string // SQL condition
	member string
	text   string
}

const selectColumns = `
SELECT a.attname, format_type(a.atttypid, NULL), a.attnotnull, coalesce(pg_get_expr(d.adbin, d.adrelid), 'NULL')
FROM pg_attribute a LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
	AND a.attname <> '` + storeColumn + `' AND a.attname <> ALL ($2)
ORDER BY a.attnum`

// Columns of a constraint are in the order of the table.
const selectChecks = `
SELECT c.conname, pg_get_expr(c.conbin, c.conrelid), pg_get_constraintdef(c.oid),
	(SELECT coalesce(array_agg(attname ORDER BY attnum), '{}') FROM pg_attribute WHERE attrelid = c.conrelid AND attnum = ANY (c.conkey))
FROM pg_constraint c WHERE c.conrelid = $1::regclass AND c.contype = 'c' ORDER BY c.conname`

// readTable reads the columns of a shape's table and the constraints that a row must meet.
func readTable(ctx context.Context, conn *pgx.Conn, s *shape) (*table, error) {
	t := &table{shape: s}
	if err := t.readColumns(ctx, conn); err != nil {
		return nil, fmt.Errorf("read columns of %s: %w", s.table, err)
	}
	if err := t.readRules(ctx, conn); err != nil {
		return nil, fmt.Errorf("read constraints of %s: %w", s.table, err)
	}
	return t, nil
}

func (t *table) readColumns(ctx context.Context, conn *pgx.Conn) error {
	omitted := append([]string{}, t.omitted...)
	rows, err := conn.Query(ctx, selectColumns, t.table, omitted)
	if err != nil {
		return err
	}
	var standards []string
	var c column
	var standard string
	_, err = pgx.ForEachRow(rows, []any{&c.name, &c.kind, &c.notNull, &standard}, func() error {
		c.member = t.hasMember(c.name)
		if slices.Contains(t.required, c.name) {
			standard = "NULL"
		}
		t.columns, standards = append(t.columns, c), append(standards, "("+standard+")::text")
		if _, known := readers[c.kind]; !known {
			return fmt.Errorf("%s has the unknown type %s", c.name, c.kind)
		}
		return nil
	})
	if err != nil {
		return err
	}
	into := make([]any, len(t.columns))
	for i := range t.columns {
		into[i] = &t.columns[i].standard
	}
	return conn.QueryRow(ctx, "SELECT "+strings.Join(standards, ", ")).Scan(into...)
}

// hasMember reports whether a column is a member, and not the value of another row.
func (t *table) hasMember(column string) bool {
	if _, inherited := t.inherited[column]; inherited || column == t.index {
		return false
	}
	for _, p := range t.parts {
		if _, lifted := p.lifted[column]; lifted {
			return false
		}
	}
	return true
}

func (t *table) readRules(ctx context.Context, conn *pgx.Conn) error {
	for _, c := range t.columns {
		if c.notNull && c.member && !slices.Contains(t.optional, c.name) {
			t.rules = append(t.rules, rule{quoted(c.name) + " IS NULL", c.name, "is required"})
		}
	}
	rows, err := conn.Query(ctx, selectChecks, t.table)
	if err != nil {
		return err
	}
	var name, condition, definition string
	var columns []string
	_, err = pgx.ForEachRow(rows, []any{&name, &condition, &definition, &columns}, func() error {
		s, known := sentences[name]
		if !known { // a constraint of a later migration
			s = sentence{strings.Join(columns, ", "), fmt.Sprintf("breaks %s: %s", name, definition)}
		}
		t.rules = append(t.rules, rule{"NOT (" + condition + ")", s.member, s.text})
		return nil
	})
	return err
}

// names returns the quoted names of the columns, each after prefix.
func (t *table) names(prefix string) []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = prefix + quoted(c.name)
	}
	return names
}

func (t *table) find(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
}

// staged is the name of the temporary table with the rows of the files.
func (s *shape) staged() string { return "staged_" + s.table }

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
