package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"commerce/cart/money"
)

// checker compares the staged rows with the constraints of the schema and with each
// other.
type checker struct {
	conn   *pgx.Conn
	store  int64
	tables map[*shape]*table
	faults *Faults
}

// all checks all files. The error is the faults, if there are any.
func (c *checker) all(ctx context.Context, files []File) error {
	if err := index(ctx, c.conn, c.tables); err != nil {
		return err
	}
	for _, f := range files {
		if err := c.file(ctx, f); err != nil {
			return err
		}
	}
	if !c.faults.ReferencesSkipped {
		if err := c.references(ctx, files); err != nil {
			return err
		}
	}
	if c.faults.Total > 0 {
		c.faults.trim()
		return c.faults
	}
	return nil
}

// file reports what is wrong with the rows of a file alone.
func (c *checker) file(ctx context.Context, f File) error {
	for _, s := range f.shape.all() {
		t := c.tables[s]
		if err := c.rules(ctx, f, t); err != nil {
			return fmt.Errorf("check rules of %s: %w", t.table, err)
		}
		if t.keys == nil {
			continue
		}
		if err := c.query(ctx, f, t.repeated()); err != nil {
			return fmt.Errorf("check keys of %s: %w", t.table, err)
		}
	}
	if f.shape == subscriptionShape {
		return c.currencies(ctx, f)
	}
	return nil
}

// rules checks all constraints in one scan.
func (c *checker) rules(ctx context.Context, f File, t *table) error {
	broken, numbers := make([]string, len(t.rules)), make([]string, len(t.rules))
	for i, r := range t.rules {
		broken[i] = "(" + r.broken + ")"
		numbers[i] = fmt.Sprintf("CASE WHEN %s THEN %d END", r.broken, i)
	}
	rows, err := c.conn.Query(ctx, fmt.Sprintf("SELECT line, path, array_remove(ARRAY[%s], NULL) FROM %s WHERE %s ORDER BY line, path",
		strings.Join(numbers, ", "), t.staged(), strings.Join(broken, " OR ")))
	if err != nil {
		return err
	}
	var line int64
	var path string
	var numbersBroken []int
	_, err = pgx.ForEachRow(rows, []any{&line, &path, &numbersBroken}, func() error {
		for _, i := range numbersBroken {
			c.faults.add(Fault{f.Name, line, join(path, t.rules[i].member), t.rules[i].text})
		}
		return nil
	})
	return err
}

// query adds the faults that sql selects: line, path, member and text.
func (c *checker) query(ctx context.Context, f File, sql string, args ...any) error {
	rows, err := c.conn.Query(ctx, sql+" ORDER BY line, path", args...)
	if err != nil {
		return err
	}
	var path string
	fault := Fault{File: f.Name}
	_, err = pgx.ForEachRow(rows, []any{&fault.Line, &path, &fault.Member, &fault.Text}, func() error {
		at := fault
		at.Member = join(path, fault.Member)
		c.faults.add(at)
		return nil
	})
	return err
}

// repeated selects rows with the key of an earlier row.
func (t *table) repeated() string {
	last := t.keys[len(t.keys)-1]
	text := fmt.Sprintf("format('%%s is also on line %%s', %s, first)", quoted(last))
	if t.keys[0] == "line" {
		text = "'is there twice'" // names are the platform's, so a fault does not repeat them
	}
	return fmt.Sprintf(`SELECT line, path, '%s', %s FROM (
			SELECT *, row_number() OVER w AS n, first_value(line) OVER w AS first FROM %s WINDOW w AS (PARTITION BY %s ORDER BY line, path)
		) rows WHERE n > 1 AND %[1]s IS NOT NULL`, last, text, t.staged(), strings.Join(t.keys, ", "))
}

// currencies reports currencies that the service could not show. The schema only checks
// their form.
func (c *checker) currencies(ctx context.Context, f File) error {
	rows, err := c.conn.Query(ctx, "SELECT DISTINCT currency FROM staged_subscriptions WHERE currency ~ '^[A-Z]{3}$'")
	if err != nil {
		return err
	}
	used, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var unknown []string
	for _, code := range used {
		if !money.Known(code) {
			unknown = append(unknown, code)
		}
	}
	return c.query(ctx, f, "SELECT line, path, 'currency', format('%s is not a known currency', currency) FROM staged_subscriptions WHERE currency = ANY ($1)", unknown)
}

// references reports rows that contradict other rows, or need rows that are neither in the
// files nor in the store.
func (c *checker) references(ctx context.Context, files []File) error {
	for _, f := range files {
		queries := ofProducts
		if f.shape == subscriptionShape {
			queries = append(slices.Clone(ofSubscriptions), c.tables[customerShape].contradicting(), c.tables[cardShape].contradicting())
		}
		for _, sql := range queries {
			var args []any
			if strings.Contains(sql, "$1") {
				args = append(args, c.store)
			}
			if err := c.query(ctx, f, sql, args...); err != nil {
				return fmt.Errorf("check references of %s: %w", f.shape.table, err)
			}
		}
	}
	return nil
}

// contradicting selects the members of rows that differ from those of the first row with
// the same ID.
func (t *table) contradicting() string {
	var members []string
	for _, c := range t.columns {
		if c.name != "id" {
			members = append(members, fmt.Sprintf("('%s', s.%s IS DISTINCT FROM f.%[2]s)", c.name, quoted(c.name)))
		}
	}
	return fmt.Sprintf(`
SELECT s.line, s.path, v.member, format('differs from line %%s, which has the same id', f.line)
FROM %s s JOIN (SELECT DISTINCT ON (id) * FROM %[1]s WHERE id IS NOT NULL ORDER BY id, line) f USING (id)
CROSS JOIN LATERAL (VALUES %s) v (member, differs)
WHERE (%s) IS DISTINCT FROM (%s) AND v.differs`,
		t.staged(), strings.Join(members, ", "), strings.Join(t.names("s."), ", "), strings.Join(t.names("f."), ", "))
}

// A plan stays with its product, because subscriptions name both.
var ofProducts = []string{`
SELECT s.line, s.path, 'id', format('%s is a plan of product %s in the store', s.id, p.product_id)
FROM staged_plans s JOIN plans p ON (p.store_id, p.id) = ($1, s.id) WHERE p.product_id <> s.product_id`}

var ofSubscriptions = []string{
	`
SELECT line, path, 'product_id', format('there is no product %s in the files or the store', product_id)
FROM staged_subscriptions s
WHERE NOT EXISTS (SELECT FROM staged_products p WHERE p.id = s.product_id)
	AND NOT EXISTS (SELECT FROM products p WHERE (p.store_id, p.id) = ($1, s.product_id))`,
	planFault("variant_id"),
	planFault("scheduled_variant_id"),
	`
SELECT s.line, s.path, 'id', format('%s is a card of customer %s in the store', s.id, c.customer_id)
FROM staged_saved_cards s JOIN saved_cards c ON (c.store_id, c.id) = ($1, s.id) WHERE c.customer_id <> s.customer_id`,
}

// planFault selects subscriptions with a plan that does not exist, or of another product.
func planFault(column string) string {
	return fmt.Sprintf(`
SELECT s.line, s.path, '%[1]s', CASE WHEN v.id IS NULL THEN format('there is no plan %%s in the files or the store', s.%[1]s)
	ELSE format('%%s is a plan of product %%s', s.%[1]s, v.product_id) END
FROM staged_subscriptions s LEFT JOIN (
	SELECT id, product_id FROM staged_plans
	UNION
	SELECT id, product_id FROM plans WHERE store_id = $1
) v ON v.id = s.%[1]s
WHERE s.%[1]s IS NOT NULL AND v.product_id IS DISTINCT FROM s.product_id`, column)
}
