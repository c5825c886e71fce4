package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// writeLines is the number of lines that a statement writes. Postgres keeps every row of a
// statement in memory until it has checked the row's foreign keys.
const writeLines = 20_000

// writer writes the staged rows of files in one transaction.
type writer struct {
	tx       pgx.Tx
	store    int64
	tables   map[*shape]*table
	written  map[string]int64 // by table
	progress Progress
}

// all writes all files. lines has the number of lines of each.
func (w *writer) all(ctx context.Context, tx pgx.Tx, files []File, lines []int64) error {
	w.tx = tx
	total := int64(0)
	for _, n := range lines {
		total += n
	}
	w.progress.Writing(total)
	for i, f := range files {
		if err := w.file(ctx, f, lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// products writes the products of lines from to to, with their plans, and makes their
// fields as given.
func (w *writer) products(ctx context.Context, from, to int64) error {
	for _, s := range []*shape{productShape, planShape} {
		if err := w.upsert(ctx, s, s.staged(), from, to); err != nil {
			return err
		}
	}
	for _, sql := range []string{`
DELETE FROM fields f USING staged_products p WHERE (f.store_id, f.product_id) = ($1, p.id) AND p.line BETWEEN $2 AND $3
	AND NOT EXISTS (SELECT FROM staged_fields s WHERE (s.line, s.name) = (p.line, f.name))`, `
DELETE FROM field_options o USING staged_products p WHERE (o.store_id, o.product_id) = ($1, p.id) AND p.line BETWEEN $2 AND $3
	AND NOT EXISTS (SELECT FROM staged_field_options s WHERE (s.line, s.field, s.code) = (p.line, o.field, o.code))`} {
		if _, err := w.tx.Exec(ctx, sql, w.store, from, to); err != nil {
			return fmt.Errorf("delete fields: %w", err)
		}
	}
	for _, s := range []*shape{fieldShape, optionShape} {
		if err := w.upsert(ctx, s, s.staged(), from, to); err != nil {
			return err
		}
	}
	return nil
}

// subscriptions writes the subscriptions of lines from to to, with their customers and
// cards. Several lines may have the same customer or card.
func (w *writer) subscriptions(ctx context.Context, from, to int64) error {
	for _, s := range []*shape{customerShape, cardShape} {
		once := fmt.Sprintf("(SELECT DISTINCT ON (id) * FROM %s WHERE line BETWEEN $2 AND $3 ORDER BY id) once", s.staged())
		if err := w.upsert(ctx, s, once, from, to); err != nil {
			return err
		}
	}
	return w.upsert(ctx, subscriptionShape,
		"(SELECT s.*, c.id AS saved_card_id FROM staged_subscriptions s LEFT JOIN staged_saved_cards c USING (line)) carded", from, to, "saved_card_id")
}

// upsert inserts the rows of source, or updates the rows that exist and differ. A row
// that does not differ is not updated, so it counts as unchanged for triggers. more are
// columns of source that are not staged.
func (w *writer) upsert(ctx context.Context, s *shape, source string, from, to int64, more ...string) error {
	t := w.tables[s]
	columns := append(t.names(""), more...)
	key := primaryKey(s)
	changing := slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return slices.Contains(key, c) })
	prefixed := func(prefix string) string { return prefix + strings.Join(changing, ", "+prefix) }
	done, err := w.tx.Exec(ctx, fmt.Sprintf(`
INSERT INTO %[1]s AS t (store_id, %[2]s) SELECT $1::bigint, %[2]s FROM %[3]s WHERE line BETWEEN $2 AND $3 ORDER BY line
ON CONFLICT (store_id, %[4]s) DO UPDATE SET (%[5]s) = ROW (%[6]s) WHERE (%[7]s) IS DISTINCT FROM (%[6]s)`,
		s.table, strings.Join(columns, ", "), source, strings.Join(key, ", "),
		prefixed(""), prefixed("excluded."), prefixed("t.")), w.store, from, to)
	if err != nil {
		return fmt.Errorf("write %s: %w", s.table, err)
	}
	w.written[s.table] += done.RowsAffected()
	return nil
}

// primaryKey returns the quoted columns of the table's primary key after the store.
func primaryKey(s *shape) []string {
	switch s {
	case fieldShape:
		return []string{`"product_id"`, `"name"`}
	case optionShape:
		return []string{`"product_id"`, `"field"`, `"code"`}
	}
	return []string{`"id"`}
}

// file writes all lines of a file.
func (w *writer) file(ctx context.Context, f File, lines int64) error {
	write := w.products
	if f.shape == subscriptionShape {
		write = w.subscriptions
	}
	for from := int64(1); from <= lines; from += writeLines {
		to := min(from+writeLines-1, lines)
		if err := write(ctx, from, to); err != nil {
			return err
		}
		w.progress.Written(to - from + 1)
	}
	return nil
}

// assignCardIDs gives cards without an ID the one of the customer's card with the same
// digits and scheme, or a new one. It first moves the sequences past the IDs of the file.
// Sequences are not part of transactions, so a failed import may leave a gap.
func assignCardIDs(ctx context.Context, conn *pgx.Conn, store int64) error {
	for _, name := range []string{"saved_cards", "subscriptions"} {
		if _, err := conn.Exec(ctx, fmt.Sprintf(skipIDs, name)); err != nil {
			return fmt.Errorf("skip IDs of %s: %w", name, err)
		}
	}
	if _, err := conn.Exec(ctx, identifyCards, store); err != nil {
		return fmt.Errorf("identify cards: %w", err)
	}
	return nil
}

// Others may take numbers between the comparison and setval. They must not get them again,
// so 1000 numbers are left out. An ID above 2^53 does not move a sequence. Otherwise few
// numbers would be left, and none that every JSON reader can represent.
const skipIDs = `
SELECT setval(sequence, highest + 1000) FROM (
	SELECT pg_get_serial_sequence('%[1]s', 'id')::regclass AS sequence, max(id) AS highest FROM staged_%[1]s WHERE id <= 1::bigint << 53
) file WHERE highest > coalesce(pg_sequence_last_value(sequence), 0)`

const identifyCards = `
WITH wanted AS (
	SELECT DISTINCT customer_id, last_four, scheme FROM staged_saved_cards WHERE id IS NULL
), known AS (
	SELECT customer_id, last_four, scheme, id FROM staged_saved_cards WHERE id IS NOT NULL
	UNION ALL
	SELECT customer_id, last_four, scheme, id FROM saved_cards c WHERE store_id = $1
		AND NOT EXISTS (SELECT FROM staged_saved_cards s WHERE s.id = c.id)
), identified AS MATERIALIZED (
	SELECT customer_id, last_four, scheme, coalesce(min(known.id), nextval(pg_get_serial_sequence('saved_cards', 'id'))) AS id
	FROM wanted LEFT JOIN known USING (customer_id, last_four, scheme) GROUP BY customer_id, last_four, scheme
)
UPDATE staged_saved_cards s SET id = i.id FROM identified i
WHERE s.id IS NULL AND (s.customer_id, s.last_four, s.scheme) = (i.customer_id, i.last_four, i.scheme)`

// index lets the writer find the rows of lines.
func index(ctx context.Context, conn *pgx.Conn, tables map[*shape]*table) error {
	for _, t := range tables {
		if _, err := conn.Exec(ctx, fmt.Sprintf("CREATE INDEX ON %s (line); ANALYZE %[1]s", t.staged())); err != nil {
			return fmt.Errorf("index %s: %w", t.staged(), err)
		}
	}
	return nil
}

// counts returns the written rows of the tables, in the order of the shapes.
func (w *writer) counts(files []File) []Count {
	var counts []Count
	for _, f := range files {
		for _, s := range f.shape.all() {
			if !slices.ContainsFunc(counts, func(c Count) bool { return c.Table == s.table }) {
				counts = append(counts, Count{s.table, w.written[s.table]})
			}
		}
	}
	return counts
}
