package subscriptions

import (
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Filter limits a list to the subscriptions that match all of its members. A zero value
// matches everything.
type Filter struct {
	Email       string // in any case
	Phone       Phone
	CallingCode string // 1 to 4 ASCII digits

	Statuses           StatusSet
	ExternalCustomerID string // exact
}

// ByCustomer reports whether a query must find customers first.
func (f Filter) ByCustomer() bool { return f.Email != "" || f.Phone != "" }

// passes applies the filter to a subscription. c is nil if its customer is unknown.
func (f Filter) passes(s *Subscription, c *Customer) bool {
	switch {
	case f.Statuses != 0 && !f.Statuses.Has(s.Status), f.ExternalCustomerID != "" && f.ExternalCustomerID != s.ExternalCustomerID:
		return false
	case !f.ByCustomer() && f.CallingCode == "":
		return true
	case c == nil:
		return false
	}
	national, uncoded := NationalPhone(c.Phone, c.CallingCode)
	return (f.Email == "" || FoldEmail(f.Email) == FoldEmail(c.Email)) &&
		(f.Phone == "" || f.Phone.Matches(c.CallingCode, national, uncoded)) &&
		(f.CallingCode == "" || f.CallingCode == c.CallingCode)
}

// FoldEmail returns an address in lower case, as Postgres does with the collation
// und-x-icu.
func FoldEmail(address string) string { return cases.Lower(language.Und).String(address) }
