package subscriptionshttp

import (
	"strconv"

	"commerce/cart/wire"
	"commerce/subscriptions"
)

// page is one page of the list.
type page struct {
	listing
	number int   // from 1
	at     place // where a linked page begins; zero for a page by number
	rows   []subscriptions.Subscription

	older, newer string // the queries of links to the adjacent pages; "" for none
}

// ask returns the page of a listing, and the query for its rows. ok is false if none of the keys
// signed the link.
func (l *listing) ask(keys [][]byte, store int64) (p page, q subscriptions.Query, ok bool) {
	q = subscriptions.Query{Filter: l.filter, Limit: l.perPage + 1} // one more shows whether another page follows
	if l.link == "" {
		p = page{listing: *l, number: max(l.page, 1)}
		q.Skip = (p.number - 1) * l.perPage
		return p, q, true
	}
	at, ok := openLink(keys, store, l)
	if at.newer {
		q.Newer = at.id
	} else {
		q.Older = at.id
	}
	return page{listing: *l, number: at.page, at: at}, q, ok
}

// fill adds the rows that the source returned, and links, which key signs.
func (p *page) fill(rows []subscriptions.Subscription, key []byte, store int64) {
	p.rows = rows
	more := len(rows) > p.perPage // in the direction of reading
	switch {
	case more && p.at.newer:
		p.rows = rows[len(rows)-p.perPage:]
	case more:
		p.rows = rows[:p.perPage]
	}
	older, newer := p.neighbors(more)
	if older != nil {
		p.older = p.linked(*older, key, store)
	}
	switch {
	case newer != nil:
		p.newer = p.linked(*newer, key, store)
	case p.at == place{} && p.number > 1: // past the end, by number
		p.newer = p.numbered(p.number - 1)
	}
}

// neighbors returns where the next and the previous page begin, nil for none. Both start
// at an ID instead of a position, so that rows inserted in the meantime do not shift them.
// Going back, additional pages with number 1 show those rows.
func (p *page) neighbors(more bool) (older, newer *place) {
	back, on := max(p.number-1, 1), p.number+1
	if len(p.rows) == 0 {
		// The rows of the linked page are gone. The row next to it may still exist.
		switch {
		case p.at == place{}:
		case p.at.newer:
			older = &place{page: on, id: p.at.id + 1}
		default:
			newer = &place{page: back, id: p.at.id - 1, newer: true}
		}
		return older, newer
	}
	first, last := p.rows[0].ID, p.rows[len(p.rows)-1].ID
	if more || p.at.newer {
		older = &place{page: on, id: last}
	}
	if p.at.newer && more || !p.at.newer && p.number > 1 {
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

// writePage writes a page of the list. path is the list's URL without a query.
func writePage(w *wire.Writer, v *view, p *page, path string) {
	link := func(name, query string) {
		if query == "" {
			w.Null(name)
			return
		}
		w.Text(name, path+query)
	}
	w.BeginObject()
	w.Number("current_page", int64(p.number))
	w.Array("data")
	for i := range p.rows {
		w.BeginObject()
		v.subscription(&p.rows[i], seconds, seconds)
		w.EndObject()
	}
	w.EndArray()
	link("first_page_url", p.numbered(1))
	if n := len(p.rows); n > 0 { // positions in the whole list, from 1
		before := (p.number - 1) * p.perPage
		w.Number("from", int64(before+1))
		w.Number("to", int64(before+n))
	} else {
		w.Null("from")
		w.Null("to")
	}
	link("next_page_url", p.older)
	link("prev_page_url", p.newer)
	w.Text("path", path)
	w.Number("per_page", int64(p.perPage))
	w.EndObject()
}
