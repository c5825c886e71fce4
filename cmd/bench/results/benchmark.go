// Package results holds what benchmarks measure, and prints it as tables.
package results

// Benchmark is the result of one benchmark: cases under load, and single values.
type Benchmark struct {
	Name   string
	Cases  []Case
	Values []Value
}

// Case is the result of one kind of request to one server.
type Case struct {
	Name   string
	Ratios []Value
	Rounds []Round
}

// Round is the result of one turn of a case. CPU times are per request.
type Round struct {
	Requests, Failed int
	Rate             float64 // good answers per second
	P50, P99         float64 // in ms
	Server, Store    float64 // CPU time in µs
	Resident         float64 // MB of the server, after the turn
}

// CPU is the CPU time of the server and of what keeps its data.
func (r Round) CPU() float64 { return r.Server + r.Store }

// Value is a single result with its unit.
type Value struct {
	Name string
	Unit string
	Figure
	AtMost, AtLeast float64 // the target; 0 for none
}

// Figure is the figure of one value of each round.
func (c Case) Figure(value func(Round) float64) Figure { return FigureOf(c.all(value)...) }

// Over is the figure of the ratios of one value to that of another case, round by round.
func (c Case) Over(other Case, value func(Round) float64) Figure {
	return RatioOf(c.all(value), other.all(value))
}

func (c Case) all(value func(Round) float64) []float64 {
	var values []float64
	for _, r := range c.Rounds {
		values = append(values, value(r))
	}
	return values
}

// Rate is the median of the good answers per second.
func (c Case) Rate() float64 { return c.Figure(func(r Round) float64 { return r.Rate }).Median }
