package subscriptionshttp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"commerce/subscriptions"
)

// linkParameter is the parameter with the opaque part of a page link.
const linkParameter = "cursor"

// place is where a linked page begins. Every page costs the same, since its rows are found
// by ID and no rows are skipped.
type place struct {
	page  int   // its number, for current_page, from and to
	id    int64 // of the row next to the page
	newer bool  // the page has the rows just above id, else those just below
}

const (
	linkSum = 16 // bytes of the signature that a link carries
	maxLink = 80 // characters; sealed links have at most 46

	// maxLinkedPage is the maximum number of a linked page, up to which JSON numbers
	// are exact.
	maxLinkedPage = 1 << 53
)

// A link has its place and a signature of the place, store, filter and page size. If any of
// these or the link is changed, the signature does not match.
//
//	newer? 1 byte · page, id: uvarint · signature, 16 bytes

// seal returns the opaque part of a link to a place in a store's listing.
func (p place) seal(key []byte, store int64, l *listing) string {
	link := p.append(make([]byte, 0, maxLink))
	link = append(link, p.sign(key, store, l)...)
	return base64.RawURLEncoding.EncodeToString(link)
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
	id, _ := binary.Uvarint(link[1+n:])
	p = place{page: int(page), id: int64(id), newer: link[0] == 1}
	if l.page != 0 && l.page != p.page {
		return place{}, false
	}
	for _, key := range keys {
		if hmac.Equal([]byte(l.link), []byte(p.seal(key, store, l))) {
			return p, true
		}
	}
	return place{}, false
}

func (p place) append(b []byte) []byte {
	direction := byte(0)
	if p.newer {
		direction = 1
	}
	b = binary.AppendUvarint(append(b, direction), uint64(p.page))
	return binary.AppendUvarint(b, uint64(p.id))
}

func (p place) sign(key []byte, store int64, l *listing) []byte {
	signed := p.append(append(make([]byte, 0, 128), "page link\x00"...))
	signed = binary.AppendUvarint(signed, uint64(store))
	signed = binary.AppendUvarint(signed, uint64(l.perPage))
	for _, part := range []string{
		subscriptions.FoldEmail(l.filter.Email), string(l.filter.Phone), l.filter.CallingCode,
		strings.Join(l.filter.Statuses.Names(), ","), l.filter.ExternalCustomerID,
	} {
		signed = binary.AppendUvarint(signed, uint64(len(part)))
		signed = append(signed, part...)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(signed)
	return mac.Sum(nil)[:linkSum]
}
