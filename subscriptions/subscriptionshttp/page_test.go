package subscriptionshttp

import (
	"slices"
	"strings"
	"testing"

	"commerce/subscriptions"
)

// Links lead to the end of the list, although page numbers are limited.
func TestLinks_ContinuePastTheHighestPageNumber(t *testing.T) {
	t.Parallel()
	var all []subscriptions.Subscription
	for id := range int64(20) {
		all = append(all, subscriptions.Subscription{ID: 1 + id, StoreID: 1})
	}
	source := subscriptions.NewMemory(nil, all)
	keys, err := source.LinkKeys(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	start := listing{perPage: 2, kept: "&per_page=2"}
	walk := func(query string, link func(page) string) (numbers []int, ids []int64) {
		for query != "" {
			asked, err := parseListing(strings.TrimPrefix(query, "?"))
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			p, q, ok := asked.ask(keys, 1)
			if !ok {
				t.Fatalf("%s is refused", query)
			}
			rows, err := source.List(t.Context(), 1, q)
			if err != nil {
				t.Fatal(err)
			}
			p.fill(rows, keys[0], 1)
			numbers = append(numbers, p.number)
			for _, s := range p.rows {
				ids = append(ids, s.ID)
			}
			query = link(p)
		}
		return numbers, ids
	}
	const before = maxPage - 2
	forth := start.linked(place{page: before, id: 11}, keys[0], 1)
	numbers, ids := walk(forth, func(p page) string { return p.older })
	if want := []int64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}; !slices.Equal(ids, want) || numbers[4] != maxPage+2 {
		t.Errorf("forward: %v on pages %v, want %v up to page %d", ids, numbers, want, maxPage+2)
	}
	back := start.linked(place{page: maxPage + 2, id: 2, newer: true}, keys[0], 1)
	numbers, ids = walk(back, func(p page) string { return p.newer })
	if len(ids) != 18 || ids[0] != 4 || numbers[8] != maxPage-6 {
		t.Errorf("back: %v on pages %v, want 18 from 4 on down to page %d", ids, numbers, maxPage-6)
	}
}
