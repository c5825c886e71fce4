package subscriptions

import "strconv"

// page is one page of the list.
type page struct {
	listing
	number int // from 1
	rows   []Subscription

	older, newer string // the queries of links to the adjacent pages; "" for none
}

// question is the query for a page.
type question struct {
	Query
	number int   // of the page
	at     place // where a linked page begins
}

// ask returns the query for a listing. ok is false if none of the keys signed the link.
func (l *listing) ask(keys [][]byte, store int64) (q question, ok bool) {
	q.Query = Query{Filter: l.filter, Limit: l.perPage + 1} // one more shows whether another page follows
	if l.link == "" {
		q.number = max(l.page, 1)
		q.Skip = (q.number - 1) * l.perPage
		return q, true
	}
	if q.at, ok = openLink(keys, store, l); !ok {
		return question{}, false
	}
	q.number = q.at.page
	if q.at.newer {
		q.Newer = q.at.id
	} else {
		q.Older = q.at.id
	}
	return q, true
}

// newPage returns the page for the rows that the source returned for q. key signs its
// links.
func newPage(key []byte, store int64, l listing, q question, rows []Subscription) page {
	p := page{listing: l, number: q.number, rows: rows}
	more := len(rows) > l.perPage // in the direction of reading
	switch {
	case more && q.Newer != 0:
		p.rows = rows[len(rows)-l.perPage:]
	case more:
		p.rows = rows[:l.perPage]
	}
	older, newer := p.neighbors(q, more)
	if older != nil {
		p.older = l.linked(*older, key, store)
	}
	switch {
	case newer != nil:
		p.newer = l.linked(*newer, key, store)
	case q.at == place{} && q.number > 1: // past the end, by number
		p.newer = l.numbered(q.number - 1)
	}
	return p
}

// neighbors returns where the next and the previous page begin, nil for none. Both start
// at an ID instead of a position, so that rows inserted in the meantime do not shift them.
// Going back, additional pages with number 1 show those rows.
func (p *page) neighbors(q question, more bool) (older, newer *place) {
	back, on := max(p.number-1, 1), p.number+1
	if len(p.rows) == 0 {
		// The rows of the linked page are gone. The row next to it may still exist.
		switch {
		case q.at == place{}:
		case q.at.newer:
			older = &place{page: on, id: q.at.id + 1}
		default:
			newer = &place{page: back, id: q.at.id - 1, newer: true}
		}
		return older, newer
	}
	first, last := p.rows[0].ID, p.rows[len(p.rows)-1].ID
	if more || q.at.newer {
		older = &place{page: on, id: last}
	}
	if q.at.newer {
		if more {
			newer = &place{page: back, id: first, newer: true}
		}
	} else if p.number > 1 {
		newer = &place{page: back, id: first, newer: true}
	}
	return older, newer
}

// numbered returns the query of a page by number.
func (l *listing) numbered(number int) string {
	return "?page=" + strconv.Itoa(number) + l.kept
}

func (l *listing) linked(p place, key []byte, store int64) string {
	return l.numbered(p.page) + "&" + linkParameter + "=" + p.seal(key, store, l)
}

// span returns the positions of the first and the last row in the whole list, from 1. ok
// is false for a page without rows.
func (p *page) span() (from, to int, ok bool) {
	from = (p.number-1)*p.perPage + 1
	return from, from + len(p.rows) - 1, len(p.rows) > 0
}
