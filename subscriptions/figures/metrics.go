package figures

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"commerce/auth/problem"
	"commerce/cart/money"
	"commerce/subscriptions"
	"commerce/subscriptions/history"
)

// MaxMonths is how many months metrics have, with the running one. History is kept as long.
const MaxMonths = 36

// Month is a calendar month in UTC: how many begin between the year 0 and it.
type Month int

func MonthOf(t time.Time) Month {
	year, month, _ := t.UTC().Date()
	return Month(12*year + int(month) - 1)
}

// ParseMonth reads a month such as "2026-07", of the year 1 or later.
func ParseMonth(s string) (Month, bool) {
	t, err := time.Parse("2006-01", s)
	return MonthOf(t), err == nil && t.Year() > 0
}

func (m Month) String() string { return fmt.Sprintf("%04d-%02d", m/12, m%12+1) }

// Movement adds up states of subscriptions that began in the same month, with the same currencies
// before and since. A currency is "" while a subscription is neither active nor past due.
type Movement struct {
	Month    Month
	From, To string // ISO 4217

	Opening  bool // nothing is known of the time before: recording began
	Imported bool // the subscriptions were loaded with these states
	Again    bool // they had been active or past due at some time before
	Paused   bool // they are paused now
	Count    int64

	// Sums of the monthly prices before and since, in parts of minor units.
	Was, Is *big.Int

	// If From is To: how many increased, by how much in all, and how many decreased.
	Increased, Decreased int64
	Raised               *big.Int
}

// parts is how many parts a minor unit has in a Movement: the months of every duration divide it.
const parts = 120

// Metrics are a store's monthly figures.
type Metrics struct {
	AsOf        time.Time // when reading the source began
	First, Last Month     // that have figures; the last one is running. If nothing is recorded, First is after Last
	Series      []Series  // by currency; those without any figure are left out, and past ones in an unknown currency
}

// Series has the figures of the months of Metrics, in one currency.
type Series struct {
	Currency string // ISO 4217, a known one
	Months   []Figures
}

// Figures are what happened in a month, and what there was at its end. The MRR is that of the month before plus
// what was gained minus what was lost, exactly: each amount is the difference of two rounded running sums, in the
// order of Kinds.
type Figures struct {
	MRR           money.Amount
	Subscriptions int64 // that are active or past due
	Moves         Moves
}

// Moves are by Kind.
type Moves [len(Kinds)]Move

// Move is an amount that was gained or lost, and of how many subscriptions. One that moves twice counts twice.
type Move struct {
	Amount        money.Amount // at least 0
	Subscriptions int64
}

// Kind is why the revenue changed.
type Kind int

const (
	New         Kind = iota // active or past due for the first time
	Imported                // loaded as such
	Reactivated             // again
	Expansion               // a higher price, or another currency before
	Contraction             // a lower price, or another currency since. This kind and those that follow are losses
	Paused
	Churned
)

// Kinds has the names of all kinds.
var Kinds = [...]string{"new", "imported", "reactivated", "expansion", "contraction", "paused", "churned"}

// flow is what changed in a month, by Kind.
type flow struct {
	sums   [len(Kinds)]big.Int // in parts of minor units; what was lost is negative
	counts [len(Kinds)]int64
	count  int64 // of subscriptions
}

// Measure makes the metrics of a store's movements, which were read at a time. A figure that cannot be shown is
// an error. Movements of later months than the running one, by another clock, count in it.
func Measure(movements []Movement, asOf time.Time) (*Metrics, error) {
	running := MonthOf(asOf)
	m := &Metrics{AsOf: asOf, First: running + 1, Last: running}
	for _, of := range movements {
		m.First = min(m.First, max(of.Month, running-MaxMonths+1), running)
	}
	flows := map[string][]flow{} // by currency; the first one is before all months
	for _, of := range movements {
		at := 0
		if !of.Opening {
			at = max(0, int(min(of.Month, running)-m.First)+1)
		}
		for _, currency := range []string{of.From, of.To} {
			if flows[currency] == nil {
				flows[currency] = make([]flow, running-m.First+2)
			}
		}
		of.addTo(&flows[of.From][at], &flows[of.To][at])
	}
	delete(flows, "")
	for _, currency := range slices.Sorted(maps.Keys(flows)) {
		s, err := measured(currency, flows[currency])
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(s.Months, func(f Figures) bool { return f != Figures{} }) {
			continue
		}
		if !money.Known(currency) {
			if s.Months[len(s.Months)-1].Subscriptions == 0 { // a mistake that was corrected
				continue
			}
			return nil, problem.UnknownCurrency("monthly figures", currency)
		}
		m.Series = append(m.Series, s)
	}
	return m, nil
}

// addTo adds the movement to what changed in the currency before, and in the one since.
func (of *Movement) addTo(from, to *flow) {
	lost := new(big.Int).Neg(of.Was)
	switch {
	case of.From == of.To:
		to.add(Expansion, of.Raised, of.Increased)
		lowered := new(big.Int).Sub(of.Is, of.Was)
		to.add(Contraction, lowered.Sub(lowered, of.Raised), of.Decreased)
		return
	case of.From == "":
		to.add(of.entry(), of.Is, of.Count)
	case of.To == "" && of.Paused:
		from.add(Paused, lost, of.Count)
	case of.To == "":
		from.add(Churned, lost, of.Count)
	default:
		to.add(Expansion, of.Is, of.Count)
		from.add(Contraction, lost, of.Count)
	}
	to.count += of.Count
	from.count -= of.Count
}

// entry returns the kind of a movement of subscriptions that begin to bear revenue.
func (of *Movement) entry() Kind {
	switch {
	case of.Imported:
		return Imported
	case of.Again:
		return Reactivated
	}
	return New
}

func (f *flow) add(kind Kind, amount *big.Int, count int64) {
	f.sums[kind].Add(&f.sums[kind], amount)
	f.counts[kind] += count
}

// measured returns the figures of all months but the first flow's.
func measured(currency string, flows []flow) (Series, error) {
	s := Series{Currency: currency, Months: make([]Figures, len(flows)-1)}
	sum, before := new(big.Int), Figures{}
	for at := range flows {
		f := Figures{MRR: before.MRR, Subscriptions: before.Subscriptions + flows[at].count}
		for kind := range f.Moves {
			sum.Add(sum, &flows[at].sums[kind])
			after, err := rounded(currency, new(big.Rat).SetFrac(sum, big.NewInt(parts)))
			if err != nil {
				return Series{}, err
			}
			moved := after - f.MRR
			if Kind(kind) >= Contraction {
				moved = -moved
			}
			f.Moves[kind], f.MRR = Move{moved, flows[at].counts[kind]}, after
		}
		if before = f; at > 0 {
			s.Months[at-1] = f
		}
	}
	return s, nil
}

// Movements returns the movements of subscriptions, from the states of each, oldest first.
func Movements(subscriptions [][]history.State) (all []Movement, err error) {
	for _, states := range subscriptions {
		if all, err = appendMovements(all, states); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// appendMovements adds those of one subscription. None is of an earlier month than one before, even if a clock was
// set back.
func appendMovements(all []Movement, states []history.State) ([]Movement, error) {
	before, again := Movement{Is: new(big.Int)}, false
	for at, s := range states {
		m := Movement{
			Month: max(before.Month, MonthOf(s.At)), From: before.To, Opening: at == 0 && s.Baseline, Again: again,
			Imported: s.WasBearing && !s.Baseline, Paused: s.Status == subscriptions.Paused,
			Count: 1, Was: before.Is, Is: new(big.Int), Raised: new(big.Int),
		}
		if history.Bears(s.Status) {
			months := s.Duration.Months()
			if months == 0 {
				return nil, subscriptions.Unavailable(fmt.Errorf("unknown duration %q", s.Duration))
			}
			m.To = s.Currency
			m.Is.Mul(big.NewInt(int64(s.Price)), big.NewInt(int64(parts/months)))
		}
		switch m.Is.Cmp(m.Was) {
		case 1:
			m.Increased = 1
			m.Raised.Sub(m.Is, m.Was)
		case -1:
			m.Decreased = 1
		}
		again = again || s.WasBearing || m.To != ""
		all, before = append(all, m), m
	}
	return all, nil
}
