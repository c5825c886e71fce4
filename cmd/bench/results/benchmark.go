package results

// Benchmark is the result of one benchmark: cases under full load, single values, and
// curves.
type Benchmark struct {
	Name   string  `json:"name"`
	Store  string  `json:"store,omitempty"` // what keeps the data: Redis or Postgres
	Cases  []Case  `json:"cases,omitempty"`
	Values []Value `json:"values,omitempty"`
	Curves []Curve `json:"curves,omitempty"`
}

// Case is the result of one kind of request to one server over all rounds.
type Case struct {
	Name        string  `json:"name"`
	Failed      int     `json:"failed"` // requests in all rounds
	Rate        Figure  `json:"requests_per_second"`
	P50         Figure  `json:"p50_ms"`
	P99         Figure  `json:"p99_ms"`
	Server      Figure  `json:"server_us"` // CPU microseconds per request
	Store       Figure  `json:"store_us"`
	Allocations Figure  `json:"allocations"`     // of the server per request
	Allocated   Figure  `json:"allocated_bytes"` // of the server per request
	Resident    Figure  `json:"resident_mb"`     // of the server, after the turn
	Ratios      []Ratio `json:"ratios"`
	Rounds      []Round `json:"rounds"`
}

// Round is the result of one turn of a case, per second and per request.
type Round struct {
	Requests    int     `json:"requests"`
	Failed      int     `json:"failed"`
	Seconds     float64 `json:"seconds"`
	Rate        float64 `json:"requests_per_second"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	Server      float64 `json:"server_us"`
	Store       float64 `json:"store_us"`
	Allocations float64 `json:"allocations"`
	Allocated   float64 `json:"allocated_bytes"`
	Resident    float64 `json:"resident_mb"`
}

// Value is a single result with its unit.
type Value struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Figure
	AtMost  *float64 `json:"at_most,omitempty"`  // the target; nil for none
	AtLeast *float64 `json:"at_least,omitempty"` // the same, of a value that should be high
}

// Missed reports whether the median misses the target.
func (v Value) Missed() bool {
	return v.AtMost != nil && v.Median > *v.AtMost || v.AtLeast != nil && v.Median < *v.AtLeast
}

// Curve is what a plot shows: series over the same axes.
type Curve struct {
	Name   string   `json:"name"`
	X      string   `json:"x"` // label of the axis, with its unit
	Y      string   `json:"y"`
	Series []Series `json:"series"`
}

// Series is one line of a plot.
type Series struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
}

// Point is a point of a series.
type Point struct {
	X float64 `json:"x"`
	Figure
}

// Case returns the case with that name; false if there is none.
func (b Benchmark) Case(name string) (Case, bool) {
	for _, c := range b.Cases {
		if c.Name == name {
			return c, true
		}
	}
	return Case{}, false
}

// Curve returns the curve with that name; false if there is none.
func (b Benchmark) Curve(name string) (Curve, bool) {
	for _, c := range b.Curves {
		if c.Name == name {
			return c, true
		}
	}
	return Curve{}, false
}
