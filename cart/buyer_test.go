package cart

import (
	"testing"
	"time"

	"golang.org/x/text/language"

	"commerce/deploy/assert"
)

func TestParseCountry_KnowsTheAssignedCodes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"DE": "DE", "de": "DE", "Gb": "GB", "": "", "D": "", "DEU": "", "D ": "", " ": "", "  ": "", "DE ": "", "T1": "", "дE": ""} {
		assert.Equal(t, ParseCountry(text), want, "%q is", text)
	}
	number := 0
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			code := string([]rune{a, b})
			if ParseCountry(code) == "" {
				continue
			}
			number++
			region, err := language.ParseRegion(code) // it knows codes of the past, too
			assert.That(t, err == nil && region.IsCountry() && region.Canonicalize() == region, "%s is no country", code)
		}
	}
	assert.Equal(t, number, 249, "countries")
}

func TestSetBuyer_AnAgentDoesNotReplaceTheShopper(t *testing.T) {
	t.Parallel()
	line := []Line{{ID: "1", Quantity: 1}}
	german, agents := Buyer{"DE", ByShopper}, Buyer{"FR", ByAgent}
	for name, test := range map[string]struct {
		cart    Cart
		set     Buyer
		want    Buyer
		altered bool
	}{
		"a shopper":                {Cart{}, german, german, true},
		"the same again":           {Cart{Buyer: german}, german, german, false},
		"a shopper after an agent": {Cart{Buyer: agents, Lines: line}, german, german, true},
		"an agent":                 {Cart{Lines: line}, agents, agents, true},
		"another agent":            {Cart{Buyer: Buyer{"IT", ByAgent}, Lines: line}, agents, agents, true},
		"an agent after a shopper": {Cart{Buyer: german, Lines: line}, agents, german, false},
		"an agent without lines":   {Cart{}, agents, Buyer{}, false},
		"nobody":                   {Cart{Buyer: german}, Buyer{}, Buyer{}, true},
		"nobody again":             {Cart{}, Buyer{}, Buyer{}, false},
	} {
		got := SetBuyer(test.set)(&Cell{Cart: test.cart}, testLimits, time.Time{})
		assert.That(t, got.Cart.Buyer == test.want && got.Altered == test.altered, "%s: %v, altered: %v", name, got.Cart.Buyer, got.Altered)
	}
}

func TestClear_KeepsTheBuyer(t *testing.T) {
	t.Parallel()
	held := Cart{Buyer: Buyer{"DE", ByShopper}, Lines: []Line{{ID: "1", Quantity: 1}}}
	got := Clear()(&Cell{Cart: held}, testLimits, time.Time{})
	assert.That(t, got.Altered && got.Cart.Buyer == held.Buyer && got.Cart.InUse(), "cleared: %+v", got.Cart)
	got = Clear()(&Cell{Cart: got.Cart}, testLimits, time.Time{})
	assert.That(t, !got.Altered, "cleared again: %+v", got)
}
