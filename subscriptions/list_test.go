package subscriptions_test

import (
	"cmp"
	"fmt"
	mathrand "math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
	"commerce/subscriptions"
	"commerce/subscriptions/suite"
)

// Orders of lists.
func newestFirst(a, b subscriptions.Subscription) int { return cmp.Compare(b.ID, a.ID) }

func byPeriodEnd(a, b subscriptions.Subscription) int {
	return cmp.Or(a.PeriodEnd.Compare(b.PeriodEnd), cmp.Compare(a.ID, b.ID))
}

// idsOf returns the IDs of a store's subscriptions that pass, in an order. nil: all pass.
func idsOf(all []subscriptions.Subscription, store int64, order func(a, b subscriptions.Subscription) int, pass func(s subscriptions.Subscription) bool) []int64 {
	ids := []int64{}
	for _, s := range slices.SortedFunc(slices.Values(all), order) {
		if s.StoreID == store && (pass == nil || pass(s)) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func TestList_WalksEveryPageOnceNewestFirst(t *testing.T) {
	t.Parallel()
	d := suite.SampleData()
	suite.OnEach(t, d, func(t *testing.T, b suite.Bundle) {
		for _, query := range []string{"", "?per_page=1", "?per_page=7", "?per_page=16", "?per_page=48"} {
			wantWalk(t, b, "http://shop.test/subscriptions"+query, idsOf(d.All, 1, newestFirst, nil))
		}
	})
}

// wantWalk expects IDs in both directions.
func wantWalk(t *testing.T, b suite.Bundle, start string, want []int64) {
	t.Helper()
	forth, back := walk(t, b, start)
	assert.Equal(t, slices.Concat(forth...), want, "%s, by next_page_url", start)
	slices.Reverse(back)
	assert.Equal(t, back, forth, "%s, back by prev_page_url (-forth +back)", start)
}

// walk follows next_page_url to the end and prev_page_url back to the beginning. It checks
// the metadata of each page, and that its number gives the same page as its link.
func walk(t *testing.T, b suite.Bundle, start string) (forth, back [][]int64) {
	t.Helper()
	at := start
	var last suite.Answer
	position := 1
	for number := 1; ; number++ {
		last = b.List(t, at, 1)
		ids := last.IDs()
		forth = append(forth, ids)
		assert.Require(t, last.CurrentPage == number && *last.From == position && *last.To == position+len(ids)-1,
			"%s: page %d, %d to %d; want page %d from %d", at, last.CurrentPage, *last.From, *last.To, number, position)
		position += len(ids)
		assert.Equal(t, b.List(t, numbered(t, start, number), 1).Data, last.Data, "page %d by number", number)
		if last.NextPageURL == nil {
			break
		}
		at = *last.NextPageURL
	}
	for at = ""; ; at = *last.PrevPageURL {
		if at != "" {
			last = b.List(t, at, 1)
		}
		back = append(back, last.IDs())
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
	suite.OnEach(t, suite.SampleData(), func(t *testing.T, b suite.Bundle) {
		assert.Equal(t, len(b.List(t, "http://shop.test/subscriptions", 1).Data), 15, "rows of a page")
		past := b.List(t, "http://shop.test/subscriptions?page=10001&per_page=100", 1)
		previous := "http://shop.test/subscriptions?page=10000&per_page=100"
		want := suite.Answer{
			CurrentPage: 10_001, Data: []map[string]any{}, FirstPageURL: "http://shop.test/subscriptions?page=1&per_page=100",
			PrevPageURL: &previous, Path: "http://shop.test/subscriptions", PerPage: 100,
		}
		assert.Equal(t, past, want, "past the end")
	})
}

func TestList_Filters(t *testing.T) {
	t.Parallel()
	d := suite.SampleData()
	d.Customers = append(d.Customers,
		subscriptions.Customer{StoreID: 1, ID: 1101, Email: "SARA@example.COM", Phone: "+966 (0) 55-777 8888", CallingCode: "966"},
		subscriptions.Customer{StoreID: 1, ID: 1102, Phone: "0557778888", CallingCode: "971"},
		subscriptions.Customer{StoreID: 1, ID: 1103, Email: "nobody@example.com", Phone: "7012345678", CallingCode: "7"},
		subscriptions.Customer{StoreID: 1, ID: 1104, Phone: "00201001234567", CallingCode: "20"},
		subscriptions.Customer{StoreID: 1, ID: 1105, Phone: "557778888"},
	)
	for i := range 5 {
		s := d.All[0]
		s.ID, s.CustomerID, s.Card = int64(7001+i), int64(1101+i), nil
		d.All = append(d.All, s)
	}
	suite.OnEach(t, d, func(t *testing.T, b suite.Bundle) {
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
				"orderId=5001", "orderId=95001&status=paused", "orderId=9223372036854775807", "orderId=95002&customerPhone=557778888",
			}},
			{[]int64{7005, 7004, 7003, 7002, 7001, 5001}, []string{"orderId=95001", "orderId=95001&status=active,paused"}},
			{[]int64{7001, 5001}, []string{"orderId=95001&customerCountryCode=966", "orderId=95001&customerEmail=sara@example.com&status=active"}},
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
				assert.Equal(t, b.List(t, "http://shop.test/subscriptions?"+query, 1).IDs(), tt.want, "%s", query)
				if len(tt.want) > 0 {
					wantWalk(t, b, "http://shop.test/subscriptions?per_page=1&"+query, tt.want)
				}
			}
		}
	})
}

// mixedData returns the subscriptions of two stores whose customers share addresses,
// numbers, calling codes and external IDs.
func mixedData() suite.Data {
	random := mathrand.New(mathrand.NewPCG(3, 4))
	one := suite.SixStates().All
	var d suite.Data
	for store := int64(1); store <= 2; store++ {
		for c := range int64(12) {
			d.Customers = append(d.Customers, subscriptions.Customer{
				StoreID: store, ID: 1001 + c, Email: []string{"sara@example.com", "Sara@Example.com", "omar@example.com", ""}[c%4],
				Phone: []string{"501234567", "0501234567", "507654321"}[c%3], CallingCode: []string{"966", "971"}[c/2%2],
			})
		}
	}
	for i := range int64(400) {
		s := one[random.IntN(len(one))]
		s.ID, s.OrderID, s.StoreID, s.CustomerID = 10_000+i, 1+i, 1+i%4/3, int64(1001+random.IntN(12))
		s.ExternalCustomerID = []string{"", "crm-7", "CRM-7", "crm 7,٧&"}[random.IntN(4)]
		s.PeriodEnd = suite.Now.Add(time.Duration(random.IntN(20)) * 12 * time.Hour)
		s.Product.ID, s.Variant.ID, s.CancelAtPeriodEnd = 4+random.Int64N(3), 41+random.Int64N(3), random.IntN(3) == 0
		s.CreatedAt = suite.Now.AddDate(0, 0, int(i)/100).Add(time.Duration(random.IntN(48)) * time.Hour)
		if s.Card, s.Scheduled = nil, nil; random.IntN(5) == 0 { // it is imported, or at the edge of a day
			s.CreatedAt = suite.Now.AddDate(0, 0, -random.IntN(6)).Truncate(24 * time.Hour).Add(-time.Duration(random.IntN(2)) * time.Microsecond)
		}
		d.All = append(d.All, s)
	}
	return d
}

// choice is a value of a filter and what it matches; "" is no filter.
type choice struct {
	value string
	match func(s subscriptions.Subscription, c subscriptions.Customer) bool
}

// choices are values of each filter. Their matches are counted without the package.
func choices() map[string][]choice {
	email := func(address string) choice {
		return choice{address, func(_ subscriptions.Subscription, c subscriptions.Customer) bool {
			return strings.EqualFold(c.Email, address)
		}}
	}
	phone := func(number string) choice {
		return choice{number, func(_ subscriptions.Subscription, c subscriptions.Customer) bool {
			return strings.HasSuffix(c.Phone, number)
		}}
	}
	code := func(code string) choice {
		return choice{code, func(_ subscriptions.Subscription, c subscriptions.Customer) bool { return c.CallingCode == code }}
	}
	status := func(list string) choice {
		return choice{list, func(s subscriptions.Subscription, _ subscriptions.Customer) bool {
			return slices.Contains(strings.Split(list, ","), string(s.Status))
		}}
	}
	external := func(id string) choice {
		return choice{id, func(s subscriptions.Subscription, _ subscriptions.Customer) bool { return s.ExternalCustomerID == id }}
	}
	order := func(id string) choice {
		return choice{id, func(s subscriptions.Subscription, _ subscriptions.Customer) bool { return fmt.Sprint(s.OrderID) == id }}
	}
	ids := func(list string) choice {
		return choice{list, func(s subscriptions.Subscription, _ subscriptions.Customer) bool {
			return slices.Contains(strings.Split(list, ","), fmt.Sprint(s.ID))
		}}
	}
	product := func(id string) choice {
		return choice{id, func(s subscriptions.Subscription, _ subscriptions.Customer) bool {
			return fmt.Sprint(s.Product.ID) == id
		}}
	}
	variant := func(id string) choice {
		return choice{id, func(s subscriptions.Subscription, _ subscriptions.Customer) bool {
			return fmt.Sprint(s.Variant.ID) == id
		}}
	}
	ends := func(want string) choice {
		return choice{want, func(s subscriptions.Subscription, _ subscriptions.Customer) bool {
			return fmt.Sprint(s.CancelAtPeriodEnd) == want
		}}
	}
	from := func(day string) choice {
		return choice{day, func(s subscriptions.Subscription, _ subscriptions.Customer) bool {
			return s.CreatedAt.Format(time.DateOnly) >= day
		}}
	}
	to := func(day string) choice {
		return choice{day, func(s subscriptions.Subscription, _ subscriptions.Customer) bool {
			return s.CreatedAt.Format(time.DateOnly) <= day
		}}
	}
	return map[string][]choice{
		"orderId":             {order("7")},
		"customerEmail":       {email("SARA@example.com"), email("omar@example.com")},
		"customerPhone":       {phone("501234567")},
		"customerCountryCode": {code("966"), code("44")},
		"status":              {status("active"), status("past_due,trialing"), status("expired,active,canceled"), status("paused,trialing,expired,past_due,active,canceled")},
		"externalCustomerId":  {external("crm-7"), external("crm 7,٧&"), external("crm-8")},
		"ids":                 {ids("10006,10001,10399,10006,1,10004,9223372036854775807"), ids("10003")}, // of which 10003 is another store's
		"productId":           {product("4"), product("5"), product("7")},
		"variantId":           {variant("41"), variant("44")},
		"cancelAtPeriodEnd":   {ends("true"), ends("false")},
		"createdFrom":         {from("2025-11-17"), from("2025-11-21"), from("0001-01-01")},
		"createdTo":           {to("2025-11-21"), to("2025-11-22"), to("9999-12-31")},
	}
}

// combinations calls each with combinations of choices, as a query and as a condition: with all of one or two
// filters, and with some of more; a short test with a quarter of them, since Postgres plans each with all partitions.
func combinations(each func(query string, pass func(s subscriptions.Subscription, c subscriptions.Customer) bool)) {
	random, all := mathrand.New(mathrand.NewPCG(5, uint64(time.Now().UnixNano()))), choices()
	with := func(chosen map[string]choice) {
		query := url.Values{}
		for parameter, c := range chosen {
			query.Set(parameter, c.value)
		}
		each(query.Encode(), func(s subscriptions.Subscription, customer subscriptions.Customer) bool {
			for _, c := range chosen {
				if !c.match(s, customer) {
					return false
				}
			}
			return true
		})
	}
	for one, values := range all {
		for _, v := range values {
			with(map[string]choice{one: v})
			for other, others := range all {
				for _, o := range others {
					if one < other && !(testing.Short() && random.IntN(4) > 0) {
						with(map[string]choice{one: v, other: o})
					}
				}
			}
		}
	}
	more := 300
	if testing.Short() {
		more = 75
	}
	for range more {
		chosen := map[string]choice{}
		for parameter, values := range all {
			if random.IntN(3) == 0 {
				chosen[parameter] = values[random.IntN(len(values))]
			}
		}
		with(chosen)
	}
}

// Links lead through the matching rows in both directions, and page numbers to the same
// pages.
func TestList_CombinationsOfFiltersEqualARecount(t *testing.T) {
	t.Parallel()
	d := mixedData()
	customers := map[int64]subscriptions.Customer{}
	for _, c := range d.Customers {
		if c.StoreID == 1 {
			customers[c.ID] = c
		}
	}
	for _, c := range subscriptions.Criteria {
		assert.That(t, c.Sort == subscriptions.OnlySorted || choices()[c.Name] != nil, "choices has no value of %s", c.Name)
	}
	suite.OnEach(t, d, func(t *testing.T, b suite.Bundle) {
		found := 0
		combinations(func(query string, pass func(subscriptions.Subscription, subscriptions.Customer) bool) {
			want := idsOf(d.All, 1, newestFirst, func(s subscriptions.Subscription) bool { return pass(s, customers[s.CustomerID]) })
			start := fmt.Sprintf("http://shop.test/subscriptions?per_page=%d&%s", 2+len(want)/4, query)
			if len(want) == 0 {
				assert.Equal(t, b.List(t, start, 1).IDs(), want, "%s", query)
				return
			}
			found++
			wantWalk(t, b, start, want)
		})
		assert.That(t, found >= 50, "only %d combinations match anything", found)
	})
}

// Many subscriptions end at the same time. The last microsecond of a day belongs to it.
func TestList_ByPeriodEndEqualsARecount(t *testing.T) {
	t.Parallel()
	d := mixedData()
	for i, end := range []string{"2025-11-21T00:00:00Z", "2025-11-20T23:59:59.999999Z", "2025-11-22T23:59:59.999999Z", "2025-11-23T00:00:00Z"} {
		d.All[4*i].PeriodEnd = assert.Must(time.Parse(time.RFC3339Nano, end))(t)
	}
	suite.OnEach(t, d, func(t *testing.T, b suite.Bundle) {
		for _, status := range []string{"", "active", "past_due,trialing,paused"} {
			for _, days := range []struct{ from, to string }{
				{"", ""}, {"2025-11-21", ""}, {"", "2025-11-22"}, {"2025-11-21", "2025-11-22"}, {"2025-11-24", "2025-11-24"}, {"2030-01-01", "9999-12-31"},
			} {
				start := "http://shop.test/subscriptions?sort=periodEnd"
				for name, value := range map[string]string{"status": status, "periodEndFrom": days.from, "periodEndTo": days.to} {
					if value != "" {
						start += "&" + name + "=" + value
					}
				}
				want := idsOf(d.All, 1, byPeriodEnd, func(s subscriptions.Subscription) bool {
					day := s.PeriodEnd.Format(time.DateOnly)
					return (status == "" || slices.Contains(strings.Split(status, ","), string(s.Status))) && day >= days.from && (days.to == "" || day <= days.to)
				})
				if len(want) == 0 {
					assert.Equal(t, b.List(t, start, 1).IDs(), want, "%s", start)
					continue
				}
				wantWalk(t, b, fmt.Sprintf("%s&per_page=%d", start, 2+len(want)/5), want)
			}
		}
	})
}

func TestList_KeepsFiltersInItsLinksAsGiven(t *testing.T) {
	t.Parallel()
	suite.OnEach(t, mixedData(), func(t *testing.T, b suite.Bundle) {
		const kept = "&per_page=1&status=past_due%2Cactive&externalCustomerId=crm+7%2C%D9%A7%26"
		first := b.List(t, "http://shop.test/subscriptions?externalCustomerId=crm%207,٧%26&status=past_due,active&per_page=1", 1)
		assert.Equal(t, first.FirstPageURL, "http://shop.test/subscriptions?page=1"+kept, "first page")
		want := "http://shop.test/subscriptions?page=2" + kept + "&cursor="
		assert.That(t, strings.HasPrefix(*first.NextPageURL, want), "next page: %s, want %s", *first.NextPageURL, want)
		b.List(t, strings.Replace(*first.NextPageURL, "past_due%2Cactive", "active%2Cpast_due", 1), 1) // the same list
	})
}

// invalid are queries by the parameter that is at fault.
var invalid = map[string][]string{
	"page": {
		"page=0", "page=-1", "page=1000001",
		"page=66668", // skips 1,000,005 rows
		"page=10002&per_page=100", "page=1000000&per_page=2", "page=10002&per_page=100&customerCountryCode=966",
		"page=9007199254740993&cursor=AAAA", "page=9223372036854775808", "page=" + strings.Repeat("9", 1000),
		"page=1.0", "page=1e1", "page=01", "page=%2B1", "page=+1", "page=one", "page=", "page", "page=1&page=1",
		"page=1&page=2", "page=66668&sort=periodEnd",
	},
	"cursor":   {"page=1000001&cursor=AAAA", "cursor=", "cursor=AAAA", "cursor=" + strings.Repeat("A", 1000), "cursor=%00"},
	"per_page": {"per_page=0", "per_page=101", "per_page=-15", "per_page=٥"},
	"customerEmail": {
		"customerEmail=", "customerEmail=sara", "customerEmail=@", "customerEmail=a@b@c", "customerEmail=a@b%00",
		"customerEmail=a@%FF", "customerEmail=a%20@b", "customerEmail=" + url.QueryEscape("' OR 1=1 --"),
		"customerEmail=" + strings.Repeat("a", 253) + "@b", "customerEmail=a@b&customerEmail=a@b",
		"sort=periodEnd&customerEmail=a@b", "sort=periodEnd&customerEmail=a",
	},
	"customerPhone": {
		"customerPhone=", "customerPhone=abc", "customerPhone=0", "customerPhone=" + strings.Repeat("1", 21),
		"customerPhone=" + url.QueryEscape("1; DROP TABLE subscriptions"), "customerPhone=1&sort=periodEnd",
	},
	"customerCountryCode": {
		"customerCountryCode=", "customerCountryCode=%2B966", "customerCountryCode=SA", "customerCountryCode=12345",
		"customerCountryCode=9%2066", "customerCountryCode=0966", "customerCountryCode=0", "sort=periodEnd&customerCountryCode=966",
	},
	"status": {
		"status=", "status", "status=cancelled", "status=Active", "status=active,", "status=,active",
		"status=active,,paused", "status=active,active", "status=active,paused,active", "status=active,+paused",
		"status=active%00", "status=active&status=paused", "status=" + strings.Repeat("active,", 10_000),
	},
	"query":    {"status=active;paused", "=1", "page=%zz", "page=1;per_page=2"},
	"status[]": {"status[]=active"},
	"externalCustomerId": {
		"externalCustomerId=", "externalCustomerId=%00", "externalCustomerId=crm%FF",
		"externalCustomerId=" + strings.Repeat("x", 256), "externalCustomerId=" + strings.Repeat("٥", 256),
		"externalCustomerId=a&externalCustomerId=a", "sort=periodEnd&externalCustomerId=a",
	},
	"externalCustomerID":   {"externalCustomerID=a"},
	"external_customer_id": {"external_customer_id=a"},
	"customeremail":        {"customeremail=a@b"},
	"customerEmail[]":      {"customerEmail[]=a@b"},
	"email":                {"email=a@b"},
	"perPage":              {"perPage=10"},
	"sort":                 {"sort=id", "sort=", "sort=periodEnd&sort=periodEnd", "sort=periodend", "sort=-periodEnd", "sort=periodEnd,id"},
	"orderId": {
		"orderId=", "orderId=0", "orderId=-1", "orderId=%2B1", "orderId=01", "orderId=1.0", "orderId=1e3", "orderId=٥", "orderId=9223372036854775808",
		"orderId=1&orderId=1", "sort=periodEnd&orderId=1", "sort=periodEnd&orderId=0",
	},
	"ids": {
		"ids=", "ids=0", "ids=-1", "ids=01", "ids=1,", "ids=,1", "ids=1,,2", "ids=1,+2", "ids=a", "ids=1.0", "ids=9223372036854775808", "ids=1&ids=2",
		"ids=1" + strings.Repeat(",1", 100), "sort=periodEnd&ids=1",
	},
	"productId": {"productId=", "productId=0", "productId=-4", "productId=4,5", "productId=Pro", "productId=4&productId=4", "sort=periodEnd&productId=4"},
	"variantId": {"variantId=", "variantId=0", "variantId=9223372036854775808", "variantId=41&variantId=41", "sort=periodEnd&variantId=41"},
	"cancelAtPeriodEnd": {
		"cancelAtPeriodEnd=", "cancelAtPeriodEnd=1", "cancelAtPeriodEnd=True", "cancelAtPeriodEnd=yes", "cancelAtPeriodEnd=null",
		"cancelAtPeriodEnd=true&cancelAtPeriodEnd=true", "sort=periodEnd&cancelAtPeriodEnd=true",
	},
	"createdFrom": {
		"createdFrom=", "createdFrom=2025-02-30", "createdFrom=2025-11-20T00:00:00Z", "createdFrom=0000-12-31", "createdFrom=10000-01-01",
		"createdFrom=2025-11-21&createdTo=2025-11-20", "createdFrom=2025-11-20&createdFrom=2025-11-20", "sort=periodEnd&createdFrom=2025-11-20",
	},
	"createdTo": {"createdTo=", "createdTo=today", "createdFrom=2025-11-21&createdTo=2025-11-20", "sort=periodEnd&createdTo=2025-11-20"},
	"periodEndFrom": {
		"periodEndFrom=2025-11-20", "periodEndFrom=2025-11-20&status=active", "sort=periodEnd&periodEndFrom=", "sort=periodEnd&periodEndFrom=2025-02-30",
		"sort=periodEnd&periodEndFrom=2025-11-20T00:00:00Z", "sort=periodEnd&periodEndFrom=2025-1-1", "sort=periodEnd&periodEndFrom=0000-12-31",
		"sort=periodEnd&periodEndFrom=10000-01-01", "sort=periodEnd&periodEndFrom=2025-11-20&periodEndFrom=2025-11-20",
		"sort=periodEnd&periodEndFrom=2025-11-21&periodEndTo=2025-11-20",
	},
	"periodEndTo": {
		"periodEndTo=2025-11-20", "periodEndTo=0001-01-01", "sort=periodEnd&periodEndTo=2025-11-31", "sort=periodEnd&periodEndTo=tomorrow", "sort=periodEnd&periodEndTo=%202025-11-20",
		"sort=periodEnd&periodEndFrom=2025-11-21&periodEndTo=2025-11-20", "sort=periodEnd&periodEndTo=٢٠٢٥-11-20",
	},
}

// Every refusal names the parameter, and none returns rows.
func TestList_RefusesInvalidParameters(t *testing.T) {
	t.Parallel()
	suite.OnEach(t, suite.SampleData(), func(t *testing.T, b suite.Bundle) {
		for at, queries := range invalid {
			for _, query := range queries {
				refused := b.Refused(t, "http://shop.test/subscriptions?"+query, 1)
				assert.That(t, refused.Code == "invalid_parameter" && len(refused.Errors[at]) == 1 && refused.Message != "",
					"%.80s: %+v, want invalid_parameter at %q", query, refused, at)
			}
		}
		for _, page := range []string{"10002", "1000000", "1000001", "9007199254740993", strings.Repeat("9", 30)} {
			tooFar := b.Refused(t, "http://shop.test/subscriptions?per_page=100&page="+page, 1)
			assert.That(t, strings.Contains(tooFar.Message, "1000000 subscriptions") && strings.Contains(tooFar.Message, "next_page_url"), "%s: no limit, or no advice to follow links: %+v", page, tooFar)
		}
		for query, want := range map[string]int{"page=0&per_page=0&colour=red": 3, "sort=id&periodEndFrom=2025-11-20&orderId=1": 1} {
			refused := b.Refused(t, "http://shop.test/subscriptions?"+query, 1)
			assert.Equal(t, len(refused.Errors), want, "invalid parameters of %s: %+v", query, refused.Errors)
		}
	})
}

// A bare + is a space. The refusal says so where the value would be valid with it.
func TestList_SaysHowToSendAPlus(t *testing.T) {
	t.Parallel()
	b := suite.NewBundle(suite.NewMemory(nil, nil))
	for query, helps := range map[string]bool{
		"customerEmail=sara+news@example.com": true, "customerEmail=sara%20news@example.com": true, "customerEmail=+a+b@c": true,
		"customerEmail=sara+news": false, "customerEmail=sara": false, "customerEmail=a+b@c@d": false, "status=active,+paused": false, "page=+1": false,
	} {
		refused := b.Refused(t, "http://shop.test/subscriptions?"+query, 1)
		assert.That(t, strings.Contains(refused.Message, "%2B") == helps, "%s: %s", query, refused.Message)
	}
	b.List(t, "http://shop.test/subscriptions?customerEmail=sara%2Bnews@example.com", 1)
}

func TestList_AcceptsEveryParameterAtItsLimits(t *testing.T) {
	t.Parallel()
	suite.OnEach(t, suite.SampleData(), func(t *testing.T, b suite.Bundle) {
		for _, query := range []string{
			"page=1", "page=66667", "page=1000000&per_page=1", "per_page=1", "per_page=100", "page=10001&per_page=100",
			"customerEmail=a@b", "customerEmail=" + strings.Repeat("a", 252) + "@b", "customerEmail=" + url.QueryEscape("'OR''=''@b"),
			"customerPhone=1", "customerPhone=" + url.QueryEscape("\u202a+٩٦٦\u00a0٥٠١٢٣٤٥٦٧\u202c"), "customerPhone=" + strings.Repeat("1", 20), "customerCountryCode=1", "customerCountryCode=9999",
			"status=trialing", "status=expired,canceled,paused,past_due,active,trialing", "status=active%2Cpaused",
			"externalCustomerId=x", "externalCustomerId=" + strings.Repeat("x", 255), "externalCustomerId=" + strings.Repeat("٥", 255),
			"externalCustomerId=+", "externalCustomerId=" + url.QueryEscape("' OR 1=1 --\n,\""),
			"orderId=1", "orderId=9223372036854775807", "orderId=1&customerCountryCode=966&status=active&externalCustomerId=x&customerEmail=a@b&customerPhone=1",
			"ids=1", "ids=9223372036854775807,1,1", "ids=1" + strings.Repeat(",9223372036854775807", 99), "productId=9223372036854775807&variantId=1",
			"cancelAtPeriodEnd=true&status=active", "createdFrom=2025-11-20&createdTo=2025-11-20", "createdTo=9999-12-31", "createdFrom=9999-12-31", "createdTo=0001-01-01",
			"sort=periodEnd&page=66667", "sort=periodEnd&periodEndFrom=0001-01-01", "sort=periodEnd&periodEndTo=9999-12-31", "sort=periodEnd&periodEndTo=0001-01-01",
			"periodEndFrom=2024-02-29&periodEndTo=2024-02-29&sort=periodEnd&status=past_due&per_page=1&page=2",
			"&page=1&", "",
		} {
			b.List(t, "http://shop.test/subscriptions?"+query, 1)
		}
	})
}

func TestList_RefusesForeignAndTamperedLinks(t *testing.T) {
	t.Parallel()
	suite.OnEach(t, suite.SampleData(), func(t *testing.T, b suite.Bundle) {
		link := *b.List(t, "http://shop.test/subscriptions?per_page=5&customerCountryCode=966", 1).NextPageURL
		assert.Equal(t, b.List(t, link, 1).CurrentPage, 2, "the link leads to page")
		b.WantRefused(t, link, 2, "invalid_parameter")
		// TestLink_IsBoundToItsWholeListing has all changes.
		b.WantRefused(t, strings.Replace(link, "page=2", "page=3", 1), 1, "invalid_parameter", "cursor")
		// The link itself contains the page number, too.
		assert.Equal(t, b.List(t, strings.Replace(link, "page=2&", "", 1), 1).CurrentPage, 2,
			"without its number the link leads to page")
	})
}

func TestGet_NotFound(t *testing.T) {
	t.Parallel()
	suite.OnEach(t, suite.SampleData(), func(t *testing.T, b suite.Bundle) {
		for _, id := range []string{
			"5000", "6001", "0", "-5001", "+5001", "05001", "5001.0", "5e3", "five", "9223372036854775807", "9223372036854775808",
			"summar", "summaryy", "s", "Summary", "summary%20", "5001%20", "%27", "%00", "5001'--", "null", strings.Repeat("9", 1000), "%D9%A5",
		} {
			b.WantRefused(t, "http://shop.test/subscriptions/"+id, 1, "subscription_not_found")
		}
		b.WantRefused(t, "http://shop.test/subscriptions/5001", 2, "subscription_not_found")
	})
}
