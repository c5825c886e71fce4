// Package period names the billing periods a subscription plan can have.
package period

import "commerce/auth/locale"

// Duration is the key of a billing period, as the API spells it.
type Duration string

// The seven durations a plan can have.
const (
	Monthly      Duration = "monthly"
	Quarterly    Duration = "quarterly"
	SemiAnnual   Duration = "semiAnnual"
	Annually     Duration = "annually"
	Biennial     Duration = "biennial"
	Quinquennial Duration = "quinquennial"
	Decennial    Duration = "decennial"
)

// Arabic uses the noun alone for one (singular) and two (dual), and a number with the
// plural for three to ten. The digits are the same as in prices (see money.Formatter).
var periods = map[Duration]struct {
	months int
	label  locale.Text
}{
	Monthly:      {1, locale.Text{locale.En: "1 month", locale.Ar: "شهر"}},
	Quarterly:    {3, locale.Text{locale.En: "3 months", locale.Ar: "3 أشهر"}},
	SemiAnnual:   {6, locale.Text{locale.En: "6 months", locale.Ar: "6 أشهر"}},
	Annually:     {12, locale.Text{locale.En: "1 year", locale.Ar: "سنة"}},
	Biennial:     {24, locale.Text{locale.En: "2 years", locale.Ar: "سنتان"}},
	Quinquennial: {60, locale.Text{locale.En: "5 years", locale.Ar: "5 سنوات"}},
	Decennial:    {120, locale.Text{locale.En: "10 years", locale.Ar: "10 سنوات"}},
}

// Months returns the length in calendar months, 0 if d is not one of the seven.
func (d Duration) Months() int { return periods[d].months }

// Label returns the length as text to show with a price, in English if l is not in
// locale.All. The label of an invalid duration is the duration itself.
func (d Duration) Label(l locale.Locale) string {
	if p, ok := periods[d]; ok {
		return p.label.In(l)
	}
	return string(d)
}
