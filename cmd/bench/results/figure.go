package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Figure is the median and the range of all rounds.
type Figure struct {
	Median, Min, Max float64
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

// RatioOf returns the figure of the ratios of two values of each round. Other load on the
// machine affects both sides of a round alike. A base of 0, as the CPU time of a very short
// turn may be, is left out.
func RatioOf(own, base []float64) Figure {
	var ratios []float64
	for i := range own {
		if base[i] > 0 {
			ratios = append(ratios, own[i]/base[i])
		}
	}
	return FigureOf(ratios...)
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

// String is "median (min..max)", or the median if all rounds gave the same.
func (f Figure) String() string {
	if f.Min == f.Max {
		return short(f.Median)
	}
	return fmt.Sprintf("%s (%s..%s)", short(f.Median), short(f.Min), short(f.Max))
}

// short writes a number with three digits, or all digits before the point.
func short(x float64) string {
	if x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	return strconv.FormatFloat(x, 'f', max(0, min(digits, 3)), 64)
}
