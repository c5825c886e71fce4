package subscriptions_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"commerce/deploy/assert"
	"commerce/subscriptions"
)

// idsOf returns the IDs of a store's subscriptions that pass, newest first.
func idsOf(all []subscriptions.Subscription, store int64, pass func(s subscriptions.Subscription) bool) []int64 {
	ids := []int64{}
	for _, s := range all {
		if s.StoreID == store && (pass == nil || pass(s)) {
			ids = append(ids, s.ID)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

func TestList_WalksEveryPageOnceNewestFirst(t *testing.T) {
	t.Parallel()
	d := sampleData()
	onEach(t, d, func(t *testing.T, b bundle) {
		for _, query := range []string{"", "?per_page=1", "?per_page=7", "?per_page=16", "?per_page=48"} {
			wantWalk(t, b, "http://shop.test/subscriptions"+query, idsOf(d.all, 1, nil))
		}
	})
}

// wantWalk expects IDs in both directions.
func wantWalk(t *testing.T, b bundle, start string, want []int64) {
	t.Helper()
	forth, back := walk(t, b, start)
	assert.Equal(t, slices.Concat(forth...), want, "%s, by next_page_url", start)
	slices.Reverse(back)
	assert.Equal(t, back, forth, "%s, back by prev_page_url (-forth +back)", start)
}

// walk follows next_page_url to the end and prev_page_url back to the beginning. It checks
// the metadata of each page, and that its number gives the same page as its link.
func walk(t *testing.T, b bundle, start string) (forth, back [][]int64) {
	t.Helper()
	at := start
	var last answer
	position := 1
	for number := 1; ; number++ {
		last = b.list(t, at, 1)
		ids := last.ids()
		forth = append(forth, ids)
		assert.Require(t, last.CurrentPage == number && *last.From == position && *last.To == position+len(ids)-1,
			"%s: page %d, %d to %d; want page %d from %d", at, last.CurrentPage, *last.From, *last.To, number, position)
		position += len(ids)
		assert.Equal(t, b.list(t, numbered(t, start, number), 1).Data, last.Data, "page %d by number", number)
		if last.NextPageURL == nil {
			break
		}
		at = *last.NextPageURL
	}
	for at = ""; ; at = *last.PrevPageURL {
		if at != "" {
			last = b.list(t, at, 1)
		}
		back = append(back, last.ids())
		assert.Require(t, last.CurrentPage == len(forth)-len(back)+1, "%s: page %d", at, last.CurrentPage)
		if last.PrevPageURL == nil {
			return forth, back
		}
	}
}

func numbered(t *testing.T, start string, page int) string {
	t.Helper()
	u := assert.Must(url.Parse(start))(t)
	query := u.Query()
	query.Set("page", fmt.Sprint(page))
	u.RawQuery = query.Encode()
	return u.String()
}

func TestList_PagesHave15RowsAndCanBePastTheEnd(t *testing.T) {
	t.Parallel()
	onEach(t, sampleData(), func(t *testing.T, b bundle) {
		assert.Equal(t, len(b.list(t, "http://shop.test/subscriptions", 1).Data), 15, "rows of a page")
		past := b.list(t, "http://shop.test/subscriptions?page=10001&per_page=100", 1)
		previous := "http://shop.test/subscriptions?page=10000&per_page=100"
		want := answer{
			CurrentPage: 10_001, Data: []map[string]any{}, FirstPageURL: "http://shop.test/subscriptions?page=1&per_page=100",
			PrevPageURL: &previous, Path: "http://shop.test/subscriptions", PerPage: 100,
		}
		assert.Equal(t, past, want, "past the end")
	})
}

func TestList_Filters(t *testing.T) {
	t.Parallel()
	d := sampleData()
	d.customers = append(d.customers,
		subscriptions.Customer{StoreID: 1, ID: 1101, Email: "SARA@example.COM", Phone: "+966 (0) 55-777 8888", CallingCode: "966"},
		subscriptions.Customer{StoreID: 1, ID: 1102, Phone: "0557778888", CallingCode: "971"},
		subscriptions.Customer{StoreID: 1, ID: 1103, Email: "nobody@example.com", Phone: "7012345678", CallingCode: "7"},
		subscriptions.Customer{StoreID: 1, ID: 1104, Phone: "00201001234567", CallingCode: "20"},
		subscriptions.Customer{StoreID: 1, ID: 1105, Phone: "557778888"},
	)
	for i := range 5 {
		s := d.all[0]
		s.ID, s.CustomerID, s.Card = int64(7001+i), int64(1101+i), nil
		d.all = append(d.all, s)
	}
	onEach(t, d, func(t *testing.T, b bundle) {
		for _, tt := range []struct {
			want    []int64
			queries []string
		}{
			{[]int64{5006, 5005, 5004}, []string{"customerEmail=omar@example.com", "customerEmail=OMAR%40EXAMPLE.COM"}},
			{[]int64{7001, 5003, 5002, 5001}, []string{"customerEmail=sara@example.com", "customerEmail=sara@example.com&customerCountryCode=966"}},
			{[]int64{}, []string{
				"customerEmail=grace@example.org", // a customer of store 2
				"customerEmail=ara@example.com", "customerEmail=%25@example.com", "customerEmail=_ara@example.com",
				"customerPhone=971501234567", "customerPhone=50123456", "customerPhone=1501234567",
				"customerPhone=501234567966", "customerPhone=2345678", "customerCountryCode=9",
				"customerEmail=sara@example.com&customerCountryCode=971",
				"customerEmail=omar@example.com&customerPhone=501234567",
			}},
			{[]int64{5003, 5002, 5001}, []string{
				"customerPhone=501234567", "customerPhone=0501234567", "customerPhone=966501234567",
				"customerPhone=%2B966501234567",
				"customerPhone=+966501234567", // with an unencoded plus sign
				"customerPhone=00966501234567", "customerPhone=%2B966+(0)50-123.4567", "customerPhone=00000966501234567",
				"customerEmail=sara@example.com&customerPhone=501234567",
			}},
			{[]int64{7005, 7002, 7001}, []string{"customerPhone=557778888"}},
			{[]int64{7001}, []string{"customerPhone=%2B966557778888"}},
			{[]int64{7002}, []string{"customerPhone=9710557778888", "customerPhone=557778888&customerCountryCode=971"}},
			{[]int64{7003}, []string{
				"customerPhone=7012345678", // begins with the same digit as its calling code
				"customerPhone=77012345678",
				"customerPhone=12345678", // as if the stored number were +7 (0) 12345678
				"customerCountryCode=7",
			}},
			{[]int64{7004}, []string{"customerPhone=201001234567", "customerPhone=01001234567"}},
		} {
			for _, query := range tt.queries {
				assert.Equal(t, b.list(t, "http://shop.test/subscriptions?"+query, 1).ids(), tt.want, "%s", query)
				if len(tt.want) > 0 {
					wantWalk(t, b, "http://shop.test/subscriptions?per_page=1&"+query, tt.want)
				}
			}
		}
	})
}
