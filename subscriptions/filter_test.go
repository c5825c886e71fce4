package subscriptions_test

import (
	"fmt"
	mathrand "math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/subscriptions"
)

// mixedData returns the subscriptions of two stores whose customers share addresses,
// numbers, calling codes and external IDs.
func mixedData() data {
	random := mathrand.New(mathrand.NewPCG(3, 4))
	one := sixStates().all
	var d data
	for store := int64(1); store <= 2; store++ {
		for c := range int64(12) {
			d.customers = append(d.customers, subscriptions.Customer{
				StoreID: store, ID: 1001 + c, Email: []string{"sara@example.com", "Sara@Example.com", "omar@example.com", ""}[c%4],
				Phone: []string{"501234567", "0501234567", "507654321"}[c%3], CallingCode: []string{"966", "971"}[c/2%2],
			})
		}
	}
	for i := range int64(400) {
		s := one[random.IntN(len(one))]
		s.ID, s.OrderID, s.StoreID, s.CustomerID = 10_000+i, 1+i, 1+i%4/3, int64(1001+random.IntN(12))
		s.ExternalCustomerID = []string{"", "crm-7", "CRM-7", "crm 7,٧&"}[random.IntN(4)]
		s.Card, s.Scheduled = nil, nil
		d.all = append(d.all, s)
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
	return map[string][]choice{
		"customerEmail":       {{}, email("SARA@example.com"), email("omar@example.com")},
		"customerPhone":       {{}, phone("501234567")},
		"customerCountryCode": {{}, code("966"), code("44")},
		"status":              {{}, status("active"), status("past_due,trialing"), status("expired,active,canceled"), status("paused,trialing,expired,past_due,active,canceled")},
		"externalCustomerId":  {{}, external("crm-7"), external("crm 7,٧&"), external("crm-8")},
	}
}

// combinations calls each with every combination of choices: as a query, and as a condition.
func combinations(each func(query string, pass func(s subscriptions.Subscription, c subscriptions.Customer) bool)) {
	type combination struct {
		query   url.Values
		matches []choice
	}
	all := []combination{{}}
	for parameter, values := range choices() {
		var longer []combination
		for _, shorter := range all {
			for _, v := range values {
				if v.match == nil {
					longer = append(longer, shorter)
					continue
				}
				query := url.Values{parameter: {v.value}}
				for name, value := range shorter.query {
					query[name] = value
				}
				longer = append(longer, combination{query, append(slices.Clip(shorter.matches), v)})
			}
		}
		all = longer
	}
	for _, c := range all {
		each(c.query.Encode(), func(s subscriptions.Subscription, customer subscriptions.Customer) bool {
			return !slices.ContainsFunc(c.matches, func(m choice) bool { return !m.match(s, customer) })
		})
	}
}

// Links lead through the matching rows in both directions, and page numbers to the same
// pages.
func TestList_EveryCombinationOfFiltersEqualsARecount(t *testing.T) {
	t.Parallel()
	d := mixedData()
	customers := map[int64]subscriptions.Customer{}
	for _, c := range d.customers {
		if c.StoreID == 1 {
			customers[c.ID] = c
		}
	}
	onEach(t, d, func(t *testing.T, b bundle) {
		found := 0
		combinations(func(query string, pass func(subscriptions.Subscription, subscriptions.Customer) bool) {
			want := idsOf(d.all, 1, func(s subscriptions.Subscription) bool { return pass(s, customers[s.CustomerID]) })
			start := fmt.Sprintf("http://shop.test/subscriptions?per_page=%d&%s", 2+len(want)/4, query)
			if len(want) == 0 {
				assert.Equal(t, b.list(t, start, 1).ids(), want, "%s", query)
				return
			}
			found++
			wantWalk(t, b, start, want)
		})
		assert.That(t, found >= 100, "only %d combinations match anything", found)
	})
}

func TestList_KeepsFiltersInItsLinksAsGiven(t *testing.T) {
	t.Parallel()
	onEach(t, mixedData(), func(t *testing.T, b bundle) {
		const kept = "&per_page=1&status=past_due%2Cactive&externalCustomerId=crm+7%2C%D9%A7%26"
		first := b.list(t, "http://shop.test/subscriptions?externalCustomerId=crm%207,٧%26&status=past_due,active&per_page=1", 1)
		assert.Equal(t, first.FirstPageURL, "http://shop.test/subscriptions?page=1"+kept, "first page")
		want := "http://shop.test/subscriptions?page=2" + kept + "&cursor="
		assert.That(t, strings.HasPrefix(*first.NextPageURL, want), "next page: %s, want %s", *first.NextPageURL, want)
		b.list(t, strings.Replace(*first.NextPageURL, "past_due%2Cactive", "active%2Cpast_due", 1), 1) // the same list
	})
}
