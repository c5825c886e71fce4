package period

import "commerce/auth/locale"

// Label returns the length as a shopper reads it beside a price, in English
// where l is not one of ours. A duration that is not valid is its own label.
func (d Duration) Label(l locale.Locale) string {
	if l == locale.Ar {
		return d.arabic()
	}
	return d.english()
}

func (d Duration) english() string {
	switch d {
	case Monthly:
		return "1 month"
	case Quarterly:
		return "3 months"
	case SemiAnnual:
		return "6 months"
	case Annually:
		return "1 year"
	case Biennial:
		return "2 years"
	case Quinquennial:
		return "5 years"
	case Decennial:
		return "10 years"
	}
	return string(d)
}

// arabic counts as the language does: one and two are said by the noun alone
// (singular, dual), three to ten by a number and the plural. The digits are
// those of Arabic prices.
func (d Duration) arabic() string {
	switch d {
	case Monthly:
		return "شهر"
	case Quarterly:
		return "3 أشهر"
	case SemiAnnual:
		return "6 أشهر"
	case Annually:
		return "سنة"
	case Biennial:
		return "سنتان"
	case Quinquennial:
		return "5 سنوات"
	case Decennial:
		return "10 سنوات"
	}
	return string(d)
}
