package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Figure is the median and the range of all rounds.
type Figure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// FigureOf returns the figure of values, zero if there are none.
func FigureOf(values ...float64) Figure {
	if len(values) == 0 {
		return Figure{}
	}
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	return Figure{Median: Rounded((values[(n-1)/2] + values[n/2]) / 2), Min: Rounded(values[0]), Max: Rounded(values[n-1])}
}

// Rounded returns x with four digits, or without decimals if it has more digits before
// the point.
func Rounded(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	scale := math.Pow(10, max(0, 3-math.Floor(math.Log10(math.Abs(x)))))
	return math.Round(x*scale) / scale
}

// figureOf returns the figure of one value of each round.
func figureOf(rounds []Round, value func(Round) float64) Figure {
	var values []float64
	for _, r := range rounds {
		values = append(values, value(r))
	}
	return FigureOf(values...)
}

// String is "median (min..max)", or the median if all rounds gave the same.
func (f Figure) String() string {
	if f.Min == f.Max {
		return short(f.Median)
	}
	return fmt.Sprintf("%s (%s..%s)", short(f.Median), short(f.Min), short(f.Max))
}

// short writes a number with three digits, or all digits before the point.
func short(x float64) string {
	if x == 0 || x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	return strconv.FormatFloat(x, 'f', max(0, min(digits, 3)), 64)
}
