package subscriptions

import (
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Filter narrows a list down to some customers; "" does not.
type Filter struct {
	Email       string // in any case
	Phone       Phone
	CallingCode string // digits
}

// byCustomer reports whether customers have to be found first.
func (f Filter) byCustomer() bool { return f.Email != "" || f.Phone != "" }

// foldEmail returns an address in lower case. It does what Postgres does under the
// collation und-x-icu, whatever the locale of the database.
func foldEmail(address string) string { return cases.Lower(language.Und).String(address) }
