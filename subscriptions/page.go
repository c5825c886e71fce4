package subscriptions

import "strconv"

// page is one answer of the list.
type page struct {
	listing
	number int // from 1
	rows   []Subscription

	older, newer string // the links to the neighbours, each a query; "" for none
}

// query turns what was asked into what the source is asked, and the number of the
// page that the answer will be.
func (l *listing) query(key []byte, store int64) (q Query, number int, err error) {
	q = Query{Filter: l.filter, Limit: l.perPage + 1} // one more tells whether a page follows
	if l.link == "" {
		number = max(l.page, 1)
		q.Skip = (number - 1) * l.perPage
		return q, number, nil
	}
	at, ok := openLink(key, store, l)
	if !ok {
		return Query{}, 0, refuse(fault{linkParameter, textLink})
	}
	if at.newer {
		// The link came from the page that follows.
		q.Newer, q.Limit = at.id, l.perPage
	} else {
		q.Older = at.id
	}
	return q, at.page, nil
}

// newPage makes the page out of what the source answered to q.
func newPage(key []byte, store int64, l listing, number int, q Query, rows []Subscription) page {
	p := page{listing: l, number: number, rows: rows}
	follows := q.Newer != 0 && len(rows) > 0
	if len(rows) > l.perPage {
		p.rows, follows = rows[:l.perPage], true
	}
	if follows && number < maxPage {
		last := p.rows[len(p.rows)-1].ID
		p.older = l.linked(place{page: number + 1, id: last}, key, store)
	}
	switch {
	case number == 1:
	case number == 2 || len(p.rows) == 0:
		p.newer = l.numbered(number - 1)
	default:
		p.newer = l.linked(place{page: number - 1, id: p.rows[0].ID, newer: true}, key, store)
	}
	return p
}

// numbered is the query of a page by its number alone.
func (l *listing) numbered(number int) string {
	return "?page=" + strconv.Itoa(number) + l.kept
}

func (l *listing) linked(p place, key []byte, store int64) string {
	return l.numbered(p.page) + "&" + linkParameter + "=" + p.seal(key, store, l)
}

// span returns the positions of the first and the last row in the whole list, from
// 1. It is not ok for a page without rows, which has neither.
func (p *page) span() (from, to int, ok bool) {
	from = (p.number-1)*p.perPage + 1
	return from, from + len(p.rows) - 1, len(p.rows) > 0
}
