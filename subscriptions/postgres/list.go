package postgres

import (
	"cmp"
	"strconv"
	"strings"
	"sync"
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
	p := pageSQL{what: "*", of: "store_id = " + arg(store), byID: !q.ByPeriodEnd, arg: arg}
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
	byID  bool             // that order
	arg   func(any) string // adds an argument and returns its name
}

// place adds the order of the rows, and where the page begins in it. It returns the columns of the
// order. A position replaces the filter's bound on its side: with both, Postgres can begin to read at the
// bound.
func (p *pageSQL) place(q *subscriptions.Query) (key string) {
	none := subscriptions.Position{}
	if p.byID {
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

// found returns what rows must meet of the criteria that one index finds, each after " AND ".
func (p pageSQL) found(f subscriptions.Filter, by subscriptions.Index) string {
	var all strings.Builder
	for _, c := range f.Given() {
		if c.Index == by {
			all.WriteString(" AND " + c.Row(&f, p.arg))
		}
	}
	return all.String()
}

// tested returns what rows must meet of all other criteria.
func (p pageSQL) tested(f subscriptions.Filter, by subscriptions.Index) string {
	var all strings.Builder
	for _, c := range f.Given() {
		if c.Index != by {
			all.WriteString(p.test(&f, c))
		}
	}
	return all.String()
}

// test returns a condition of which Postgres knows nothing: if it chose the index, a generic plan would expect of each value
// what is true of the average.
func (p pageSQL) test(f *subscriptions.Filter, c *subscriptions.Criterion) string {
	return " AND coalesce(" + c.Row(f, p.arg) + ", false)"
}

// ofStore selects a store's subscriptions by what the subscriptions themselves have.
func (p pageSQL) ofStore(q subscriptions.Query) string {
	by := q.Filter.By()
	if by[0] == subscriptions.Few {
		return p.subscriptions(p.found(q.Filter, by[0])+p.tested(q.Filter, by[0])) + " ORDER BY " + p.order
	}
	return p.ofEach(q, by)
}

// readsSeveral reports whether the statement for a filter can read several indexes.
func readsSeveral(f subscriptions.Filter) bool {
	return !f.ByCustomer() && len(f.By()) > 1
}

// limit returns a function that adds how many rows have those of a page in them, times a number.
func (p pageSQL) limit(q subscriptions.Query, times int) func() string {
	return sync.OnceValue(func() string {
		if q.Skip != 0 {
			return p.arg(times * (q.Skip + q.Limit))
		}
		return strconv.Itoa(times * q.Limit)
	})
}

// inStates selects the rows of states that meet conditions, in order. The indexes with the status are ordered only
// within one state, so each state has a branch, and Postgres merges the branches in order. Only the plain list has an
// index without the status. States are literals, so that even a generic plan takes into account how rare they are.
// Branches have their own limit. Without it, Postgres plans each as if all of its rows were read, and sorts those of a
// large store.
func (p pageSQL) inStates(states subscriptions.StatusSet, of string, limit func() string) string {
	ordered := " ORDER BY " + p.order
	if states == subscriptions.EveryStatus && of == "" && p.byID {
		return p.subscriptions("") + ordered
	}
	branches := states.Names()
	for i, name := range branches {
		branches[i] = p.subscriptions(of+" AND status = '"+name+"'") + ordered
	}
	if len(branches) == 1 {
		return branches[0]
	}
	each := " LIMIT " + limit()
	return "SELECT * FROM ((" + strings.Join(branches, each+") UNION ALL (") + each + ")) states" + ordered
}

// ofEach selects rows that each of several indexes finds, of which none is always the best one. The next rows by the first
// are tried: mostly, they have enough for the page, or there are no more. If neither, the others find the page in the same way, and
// the last one finds all of it.
func (p pageSQL) ofEach(q subscriptions.Query, by []subscriptions.Index) string {
	f, all, tries := q.Filter, p, 100
	states := cmp.Or(f.Statuses, subscriptions.EveryStatus)
	f.Statuses = 0 // each state has a branch
	rows := p.limit(q, 1)
	switch {
	case len(by) == 1 && by[0] == subscriptions.ByDay:
		return p.ofDays(q, rows())
	case len(by) == 1:
		return p.inStates(states, p.found(f, by[0])+p.tested(f, by[0]), rows)
	case by[0] == subscriptions.ByStatus:
		tries = 20 // days are as good
	}
	next := p.limit(q, tries)
	ordered, limit := " ORDER BY "+p.order, " LIMIT "+rows()
	all.what = "*"
	tried := "(" + all.inStates(states, p.found(f, by[0]), next) + " LIMIT " + next() + ")"
	return "SELECT * FROM (WITH near AS MATERIALIZED (SELECT " + p.what + " FROM " + tried + " next WHERE true" + p.tested(f, by[0]) + ordered + limit + ")," +
		" known AS MATERIALIZED (SELECT (SELECT count(*) FROM near) = " + rows() + " OR (SELECT count(*) FROM " + tried + " next) < " + next() + " AS enough)" +
		" SELECT * FROM near WHERE (SELECT enough FROM known)" +
		" UNION ALL SELECT * FROM (" + p.ofEach(q, by[1:]) + limit + ") other WHERE NOT (SELECT enough FROM known)) page" + ordered
}

// ofDays selects a store's subscriptions by days of creation. An index has the rows of each day in the order of the
// list: a recursion reads which days there are, and the page's rows are on the days whose first row comes first. So, as
// after an import, whose rows are older than their IDs, a page costs little for each day, however many rows it has.
func (p pageSQL) ofDays(q subscriptions.Query, rows string) string {
	ordered, days := " ORDER BY "+p.order, p.found(q.Filter, subscriptions.ByDay)
	latest := func(than string) string {
		return "SELECT " + subscriptions.DaySQL + " AS day FROM subscriptions WHERE store_id = $1" + days + than +
			" ORDER BY " + subscriptions.DaySQL + " DESC LIMIT 1"
	}
	first := p
	first.what = "id"
	onDay := " AND " + subscriptions.DaySQL + " = day" + p.tested(q.Filter, subscriptions.ByDay) + ordered + " LIMIT "
	return "SELECT * FROM (WITH RECURSIVE days AS ((" + latest("") + ") UNION ALL SELECT earlier.day FROM days" +
		" CROSS JOIN LATERAL (" + latest(" AND "+subscriptions.DaySQL+" < days.day") + ") earlier)," +
		" firsts AS (SELECT day FROM days CROSS JOIN LATERAL (" + first.subscriptions(onDay) + "1) first" + ordered + " LIMIT " + rows + ")" +
		" SELECT theirs.* FROM firsts CROSS JOIN LATERAL (" + p.subscriptions(onDay) + rows + ") theirs) days" + ordered
}

// ofCustomers selects the subscriptions of matching customers. There are few such customers. An
// index returns the newest of each in order; only the combination of several customers is sorted.
func (p pageSQL) ofCustomers(q subscriptions.Query) string {
	each := p.arg(q.Skip + q.Limit)
	var who, of string
	for _, c := range q.Filter.Given() {
		if c.Customer != nil {
			who += " AND " + c.Customer(&q.Filter, p.arg)
		} else {
			of += p.test(&q.Filter, c)
		}
	}
	return "SELECT theirs.* FROM (SELECT id AS customer FROM customers WHERE store_id = $1" + who + ") whose" +
		" CROSS JOIN LATERAL (" + p.subscriptions(" AND customer_id = customer"+of) +
		" ORDER BY " + p.order + " LIMIT " + each + ") theirs ORDER BY " + p.order
}
