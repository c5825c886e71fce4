package subscriptionshttp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"

	"commerce/cart/wire"
	"commerce/subscriptions"
)

type page struct {
	listing
	number int   // from 1
	at     place // where a linked page begins; zero for a page by number
	rows   []subscriptions.Subscription

	next, previous string // the queries of links to the adjacent pages; "" for none
}

// ask returns the page of a listing, and the query for its rows. ok is false if none of the keys
// signed the link.
func (l *listing) ask(keys [][]byte, store int64) (p page, q subscriptions.Query, ok bool) {
	q = subscriptions.Query{Filter: l.filter, ByPeriodEnd: l.byPeriodEnd, Limit: l.perPage + 1} // one more shows whether another page follows
	if l.link == "" {
		p = page{listing: *l, number: max(l.page, 1)}
		q.Skip = (p.number - 1) * l.perPage
		return p, q, true
	}
	at, ok := openLink(keys, store, l)
	position := subscriptions.Position{ID: at.id}
	if l.byPeriodEnd {
		position.PeriodEnd = subscriptions.AtMicros(at.end)
	}
	if at.back {
		q.Before = position
	} else {
		q.After = position
	}
	return page{listing: *l, number: at.page, at: at}, q, ok
}

// fill adds the rows that the source returned, and links, which key signs. Links lead to a row
// instead of a number of rows, so that rows inserted in the meantime do not shift their pages. Going
// back, additional pages with number 1 show those rows.
func (p *page) fill(rows []subscriptions.Subscription, key []byte, store int64) {
	more := len(rows) > p.perPage // in the direction of reading
	p.rows = rows[:min(len(rows), p.perPage)]
	if p.at.back {
		p.rows = rows[len(rows)-len(p.rows):]
	}
	edge := func(row int) (end, id int64) {
		if p.byPeriodEnd {
			end = subscriptions.Micros(p.rows[row].PeriodEnd)
		}
		return end, p.rows[row].ID
	}
	after := func(end, id int64) string { return p.linked(place{page: p.number + 1, end: end, id: id}, key, store) }
	before := func(end, id int64) string {
		return p.linked(place{page: max(p.number-1, 1), end: end, id: id, back: true}, key, store)
	}
	down := int64(-1) // from an ID to the next one
	if p.byPeriodEnd {
		down = 1
	}
	switch n := len(p.rows); {
	case n > 0:
		if more || p.at.back {
			p.next = after(edge(n - 1))
		}
		if p.at.back && more || !p.at.back && p.number > 1 {
			p.previous = before(edge(0))
		}
	// The rows of a linked page are gone. The row next to it may still exist.
	case p.at.back:
		p.next = after(p.at.end, p.at.id-down)
	case p.at != place{}:
		p.previous = before(p.at.end, p.at.id+down)
	case p.number > 1: // past the end, by number
		p.previous = p.numbered(p.number - 1)
	}
}

func (l *listing) numbered(number int) string { return "?page=" + strconv.Itoa(number) + l.kept }

func (l *listing) linked(p place, key []byte, store int64) string {
	return l.numbered(p.page) + "&" + linkParameter + "=" + p.seal(key, store, l)
}

// writePage writes a page of the list. path is the list's URL without a query.
func writePage(w *wire.Writer, v *View, p *page, path string) {
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
	link("next_page_url", p.next)
	link("prev_page_url", p.previous)
	w.Text("path", path)
	w.Number("per_page", int64(p.perPage))
	w.EndObject()
}

// linkParameter is the parameter with the opaque part of a page link.
const linkParameter = "cursor"

// place is where a linked page begins. Every page costs the same, since its rows are found
// by an index and no rows are skipped.
type place struct {
	page int   // its number, for current_page, from and to
	end  int64 // of the current period of the row next to the page, in subscriptions.Micros; 0 if the list is not by it
	id   int64 // of that row
	back bool  // the page has the rows just before that one, else those just after
}

const (
	linkSum = 16 // bytes of the signature that a link carries
	maxLink = 80 // characters; sealed links have at most 58

	// maxLinkedPage is the maximum number of a linked page, up to which JSON numbers are exact.
	maxLinkedPage = 1 << 53
)

// A link has its place and a signature of the place, store, filter, sort and page size. If any of
// these or the link is changed, the signature does not match.
//
//	back? 1 byte · page, id: uvarint · end: varint, only of a list by it · signature, 16 bytes

// seal returns the opaque part of a link to a place in a store's listing.
func (p place) seal(key []byte, store int64, l *listing) string {
	link := append(make([]byte, 0, maxLink), 0)
	if p.back {
		link[0] = 1
	}
	link = binary.AppendUvarint(link, uint64(p.page))
	link = binary.AppendUvarint(link, uint64(p.id))
	list := "page link\x00"
	if l.byPeriodEnd {
		list = "page link by period end\x00"
		link = binary.AppendVarint(link, p.end)
	}
	signed := append(append(make([]byte, 0, 192), list...), link...)
	signed = binary.AppendUvarint(signed, uint64(store))
	signed = binary.AppendUvarint(signed, uint64(l.perPage))
	for _, c := range l.filter.Given() {
		for _, part := range []string{c.Name, c.Text(&l.filter)} {
			signed = binary.AppendUvarint(signed, uint64(len(part)))
			signed = append(signed, part...)
		}
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(signed)
	return base64.RawURLEncoding.EncodeToString(append(link, mac.Sum(nil)[:linkSum]...))
}

// openLink returns the place of l.link. ok is true only if seal made exactly this link with
// one of the keys, for the same store, filter, page size and, if given, page.
func openLink(keys [][]byte, store int64, l *listing) (p place, ok bool) {
	link, err := base64.RawURLEncoding.DecodeString(l.link)
	if err != nil || len(link) <= linkSum {
		return place{}, false
	}
	page, n := binary.Uvarint(link[1:])
	if n <= 0 {
		return place{}, false
	}
	rest := link[1+n:]
	id, n := binary.Uvarint(rest)
	p = place{page: int(page), id: int64(id), back: link[0] == 1}
	if l.byPeriodEnd {
		p.end, _ = binary.Varint(rest[max(n, 0):])
	}
	sealed := func(key []byte) bool { return hmac.Equal([]byte(l.link), []byte(p.seal(key, store, l))) }
	return p, (l.page == 0 || l.page == p.page) && slices.ContainsFunc(keys, sealed)
}
