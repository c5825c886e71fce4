package period

import "commerce/auth/locale"

// Label returns the length as a shopper reads it beside a price, in English where l is
// not one of our languages. A duration that is not valid is its own label.
func (d Duration) Label(l locale.Locale) string {
	if label, ok := labels[d]; ok {
		return label.In(l)
	}
	return string(d)
}

// In Arabic, one and two are said by the noun alone (singular, dual), three to ten by a
// number and the plural. The digits are those of Arabic prices.
var labels = map[Duration]locale.Text{
	Monthly:      {locale.En: "1 month", locale.Ar: "شهر"},
	Quarterly:    {locale.En: "3 months", locale.Ar: "3 أشهر"},
	SemiAnnual:   {locale.En: "6 months", locale.Ar: "6 أشهر"},
	Annually:     {locale.En: "1 year", locale.Ar: "سنة"},
	Biennial:     {locale.En: "2 years", locale.Ar: "سنتان"},
	Quinquennial: {locale.En: "5 years", locale.Ar: "5 سنوات"},
	Decennial:    {locale.En: "10 years", locale.Ar: "10 سنوات"},
}
