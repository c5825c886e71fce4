package period

import "commerce/auth/locale"

// Label returns the length as text to show with a price, in English if l is not in
// locale.All. The label of an invalid duration is the duration itself.
func (d Duration) Label(l locale.Locale) string {
	if label, ok := labels[d]; ok {
		return label.In(l)
	}
	return string(d)
}

// Arabic uses the noun alone for one (singular) and two (dual), and a number with the
// plural for three to ten. The digits are the same as in prices (see money.Formatter).
var labels = map[Duration]locale.Text{
	Monthly:      {locale.En: "1 month", locale.Ar: "شهر"},
	Quarterly:    {locale.En: "3 months", locale.Ar: "3 أشهر"},
	SemiAnnual:   {locale.En: "6 months", locale.Ar: "6 أشهر"},
	Annually:     {locale.En: "1 year", locale.Ar: "سنة"},
	Biennial:     {locale.En: "2 years", locale.Ar: "سنتان"},
	Quinquennial: {locale.En: "5 years", locale.Ar: "5 سنوات"},
	Decennial:    {locale.En: "10 years", locale.Ar: "10 سنوات"},
}
