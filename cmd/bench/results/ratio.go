package results

// Cost is what a ratio compares.
type Cost string

// The costs of a request.
const (
	CPU       Cost = "cpu"        // of the server and of what keeps its data
	ServerCPU Cost = "server cpu" // of the server
	StoreCPU  Cost = "store cpu"  // of what keeps the server's data
)

func (c Cost) of(r Round) float64 {
	switch c {
	case ServerCPU:
		return r.Server
	case StoreCPU:
		return r.Store
	default:
		return r.Server + r.Store
	}
}

// name is the cost in a table of a benchmark with that store.
func (c Cost) name(store string) string {
	switch c {
	case ServerCPU:
		return "server CPU"
	case StoreCPU:
		return store + " CPU"
	default:
		return "CPU"
	}
}

// Comparison is a ratio to measure.
type Comparison struct {
	Cost   Cost
	Of     string   // the other case, which must be an earlier one
	AtMost *float64 // the target; nil for none
}

// Ratio compares a cost per request with that of another case, round by round.
type Ratio struct {
	Cost Cost   `json:"cost"`
	Of   string `json:"of"`
	Figure
	AtMost *float64 `json:"at_most,omitempty"` // the target; nil for none
}

// Missed reports whether the median is above the target.
func (r Ratio) Missed() bool { return r.AtMost != nil && r.Median > *r.AtMost }

// Ratio compares a case with another one within each round. Other load on the machine
// affects both sides of a round alike.
func (c Comparison) Ratio(own, other []Round) Ratio {
	var values []float64
	for i := range own {
		if base := c.Cost.of(other[i]); base > 0 { // the CPU time of a very short turn may be 0
			values = append(values, c.Cost.of(own[i])/base)
		}
	}
	return Ratio{Cost: c.Cost, Of: c.Of, Figure: FigureOf(values...), AtMost: c.AtMost}
}

// NewCase summarizes the rounds of a case.
func NewCase(name string, rounds []Round) Case {
	c := Case{
		Name: name, Rounds: rounds, Ratios: []Ratio{},
		Rate:        figureOf(rounds, func(r Round) float64 { return r.Rate }),
		P50:         figureOf(rounds, func(r Round) float64 { return r.P50 }),
		P99:         figureOf(rounds, func(r Round) float64 { return r.P99 }),
		Server:      figureOf(rounds, ServerCPU.of),
		Store:       figureOf(rounds, StoreCPU.of),
		Allocations: figureOf(rounds, func(r Round) float64 { return r.Allocations }),
		Allocated:   figureOf(rounds, func(r Round) float64 { return r.Allocated }),
		Resident:    figureOf(rounds, func(r Round) float64 { return r.Resident }),
	}
	for _, r := range rounds {
		c.Failed += r.Failed
	}
	return c
}

// Figure is a cost over all rounds.
func (c Case) Figure(cost Cost) Figure { return figureOf(c.Rounds, cost.of) }
