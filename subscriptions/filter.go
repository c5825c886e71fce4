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

// byCustomer reports whether a query must find customers first.
func (f Filter) byCustomer() bool { return f.Email != "" || f.Phone != "" }

// foldEmail returns an address in lower case, as Postgres does with the collation
// und-x-icu.
func foldEmail(address string) string { return cases.Lower(language.Und).String(address) }
