package postgres

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"commerce/subscriptions"
)

// listSQL selects the rows of a page in a subquery, so that no plan joins first and limits
// afterwards. To skip rows, the subquery selects only what an index has: skipping the rows of a
// thousand pages then only scans the index. The limit is a literal, since for a parameter a generic plan assumes
// a tenth of the store's rows and reads the whole table to join them. Each row is joined
// separately (LIMIT 1), because a generic plan assumes that every store has the average size,
// and would read all rows of a large one for a hash join.
//
// Postgres locks all partitions of a table for each time that a generic plan names it. So
// subscriptions are named twice only to skip rows.
func listSQL(store int64, q subscriptions.Query) (sql string, args []any) {
	arg := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	p := pageSQL{what: "*", of: "store_id = " + arg(store), arg: arg}
	arg(string(q.Language)) // for columns
	key := p.place(&q)
	from, offset := "(SELECT page.*) s"+joins, ""
	if q.Skip != 0 {
		p.what, offset = key, " OFFSET "+arg(q.Skip)
		from = "subscriptions s" + joins + " WHERE s.store_id = $1 AND s.id = page.id"
	}
	var page string
	if q.Filter.ByCustomer() {
		page = p.ofCustomers(q)
	} else {
		page = p.ofStore(q)
	}
	sql = "/* subscriptions */ SELECT shown.* FROM (" + page + " LIMIT " + strconv.Itoa(q.Limit) + offset + ") page" +
		" CROSS JOIN LATERAL (SELECT" + columns + " FROM " + from + " LIMIT 1) shown"
	return sql, args
}

// pageSQL is what the subqueries of a page have in common.
type pageSQL struct {
	what  string           // the columns to select
	of    string           // the condition that all rows meet
	order string           // of the rows
	arg   func(any) string // adds an argument and returns its name
}

// place adds the order of the rows, and where the page begins in it. It returns the columns of the
// order. A position replaces the filter's bound on its side: with both, Postgres can begin to read at the
// bound.
func (p *pageSQL) place(q *subscriptions.Query) (key string) {
	none := subscriptions.Position{}
	if !q.ByPeriodEnd {
		p.order = "id DESC"
		if q.After != none {
			p.of += " AND id < " + p.arg(q.After.ID)
		}
		if q.Before != none {
			p.of += " AND id > " + p.arg(q.Before.ID)
			p.order = "id"
		}
		return "id"
	}
	p.order = "current_period_end, id"
	if q.After != none {
		p.of += " AND (current_period_end, id) > (" + p.arg(Instant(q.After.PeriodEnd)) + ", " + p.arg(q.After.ID) + ")"
		q.Filter.PeriodEndFrom = time.Time{}
	}
	if q.Before != none {
		p.of += " AND (current_period_end, id) < (" + p.arg(Instant(q.Before.PeriodEnd)) + ", " + p.arg(q.Before.ID) + ")"
		p.order = "current_period_end DESC, id DESC"
		q.Filter.PeriodEndBefore = time.Time{}
	}
	return "id, current_period_end"
}

// subscriptions selects rows that also meet more conditions, which begin with " AND ".
func (p pageSQL) subscriptions(conditions string) string {
	return "SELECT " + p.what + " FROM subscriptions WHERE " + p.of + conditions
}

// conditions returns those of a filter that one function has of its criteria, each after " AND ".
func (p pageSQL) conditions(f subscriptions.Filter, one func(*subscriptions.Criterion) subscriptions.Condition) string {
	var all strings.Builder
	for _, c := range f.Given() {
		if condition := one(c); condition != nil {
			all.WriteString(" AND " + condition(&f, p.arg))
		}
	}
	return all.String()
}

// ofStore selects a store's subscriptions by what the subscriptions themselves have. The indexes
// with the status are ordered only within one state, so each state has a branch, and Postgres
// merges the branches in order. Only the plain list has an index without the status. States are
// literals, so that even a generic plan takes into account how rare they are. Branches have their
// own limit. Without it, Postgres plans each as if all of its rows were read, and sorts those of a
// large store.
func (p pageSQL) ofStore(q subscriptions.Query) string {
	f, ordered := q.Filter, " ORDER BY "+p.order
	by := f.By()
	states := cmp.Or(f.Statuses, subscriptions.EveryStatus)
	if by == subscriptions.ByStatus {
		f.Statuses = 0 // each state has a branch
	}
	of := p.conditions(f, func(c *subscriptions.Criterion) subscriptions.Condition { return c.Row })
	switch {
	case by == subscriptions.ByDay:
		return p.ofDays(q, of)
	case by == subscriptions.Few, states == subscriptions.EveryStatus && of == "" && !q.ByPeriodEnd:
		return p.subscriptions(of) + ordered
	}
	branches := states.Names()
	for i, name := range branches {
		branches[i] = p.subscriptions(of+" AND status = '"+name+"'") + ordered
	}
	if len(branches) == 1 {
		return branches[0]
	}
	each := " LIMIT " + strconv.Itoa(q.Limit)
	if q.Skip != 0 {
		each = " LIMIT " + p.arg(q.Skip+q.Limit)
	}
	return "SELECT * FROM ((" + strings.Join(branches, each+") UNION ALL (") + each + ")) states" + ordered
}

// ofDays selects a store's subscriptions that meet conditions, among them days of creation. Mostly, the next rows of
// the list have enough of them. If not, as after an import, whose rows are older than their IDs, an index has the
// rows of each day in the order of the list: a recursion reads which days there are, and the page's rows are on the
// days whose first row comes first. So a page costs little for each day, however many rows it has.
func (p pageSQL) ofDays(q subscriptions.Query, of string) string {
	within := p.conditions(q.Filter, func(c *subscriptions.Criterion) subscriptions.Condition {
		if c.Index != subscriptions.ByDay {
			return nil
		}
		return c.Row
	})
	const tried = 20 // rows for each of the page
	ordered, rows, next := " ORDER BY "+p.order, strconv.Itoa(q.Limit), strconv.Itoa(tried*q.Limit)
	if q.Skip != 0 {
		rows, next = p.arg(q.Skip+q.Limit), p.arg(tried*(q.Skip+q.Limit))
	}
	latest := func(than string) string {
		return "SELECT " + subscriptions.DaySQL + " AS day FROM subscriptions WHERE store_id = $1" + within + than +
			" ORDER BY " + subscriptions.DaySQL + " DESC LIMIT 1"
	}
	all, first := p, p
	all.what, first.what = "*", "id"
	onDay := of + " AND " + subscriptions.DaySQL + " = day" + ordered + " LIMIT "
	return "SELECT * FROM (WITH RECURSIVE near AS MATERIALIZED (SELECT " + p.what + " FROM (" + all.subscriptions("") + ordered +
		" LIMIT " + next + ") next WHERE true" + of + ordered + " LIMIT " + rows + ")," +
		" days AS ((" + latest("") + ") UNION ALL SELECT earlier.day FROM days" +
		" CROSS JOIN LATERAL (" + latest(" AND "+subscriptions.DaySQL+" < days.day") + ") earlier)," +
		" firsts AS (SELECT day FROM days CROSS JOIN LATERAL (" + first.subscriptions(onDay) + "1) first" + ordered + " LIMIT " + rows + ")" +
		" SELECT * FROM near WHERE (SELECT count(*) FROM near) = " + rows +
		" UNION ALL SELECT theirs.* FROM firsts CROSS JOIN LATERAL (" + p.subscriptions(onDay) + rows + ") theirs" +
		" WHERE (SELECT count(*) FROM near) < " + rows + ") days" + ordered
}

// ofCustomers selects the subscriptions of matching customers. There are few such customers. An
// index returns the newest of each in order; only the combination of several customers is sorted.
func (p pageSQL) ofCustomers(q subscriptions.Query) string {
	who := p.conditions(q.Filter, func(c *subscriptions.Criterion) subscriptions.Condition { return c.Customer })
	each := p.arg(q.Skip + q.Limit)
	of := p.conditions(q.Filter, func(c *subscriptions.Criterion) subscriptions.Condition {
		if c.Customer != nil {
			return nil // who meets it already
		}
		return c.Row
	})
	return "SELECT theirs.* FROM (SELECT id AS customer FROM customers WHERE store_id = $1" + who + ") whose" +
		" CROSS JOIN LATERAL (" + p.subscriptions(" AND customer_id = customer"+of) +
		" ORDER BY " + p.order + " LIMIT " + each + ") theirs ORDER BY " + p.order
}
