// Package period names the billing periods a subscription plan can have.
package period

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

// Valid reports whether d is one of the seven, in exactly that spelling.
func (d Duration) Valid() bool { return d.Months() > 0 }

// Months returns the length in calendar months, 0 if d is not valid.
func (d Duration) Months() int {
	switch d {
	case Monthly:
		return 1
	case Quarterly:
		return 3
	case SemiAnnual:
		return 6
	case Annually:
		return 12
	case Biennial:
		return 24
	case Quinquennial:
		return 60
	case Decennial:
		return 120
	}
	return 0
}
