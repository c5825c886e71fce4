package plots

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"
)

// axis describes one axis of a plot.
type axis struct {
	label string // with the unit
	log   bool
	at    []float64 // values with a tick; nil for round values
}

// newPlot returns an empty plot in the page's style, and writes the label of its vertical
// axis.
func (p *page) newPlot(x, y axis) *plot.Plot {
	made := plot.New()
	made.BackgroundColor = nil
	p.dress(&made.X, x)
	p.dress(&made.Y, y)
	made.Y.Label.Text = ""
	if y.label != "" { // above the axis, where it is easier to read than beside it
		p.line(p.style(labelSize, p.theme.text, false), y.label)
	}
	return made
}

// dress gives an axis of a plot its style and ticks.
func (p *page) dress(a *plot.Axis, as axis) {
	a.Label.Text = as.label
	label := p.style(labelSize, p.theme.text, false)
	a.Label.TextStyle.Font, a.Label.TextStyle.Color = label.Font, label.Color
	a.Label.Padding = 6
	a.Tick.Label.Font, a.Tick.Label.Color = label.Font, p.weak
	a.Tick.LineStyle.Color, a.LineStyle.Color = p.grid, p.weak
	a.Tick.Length = 5
	a.Padding = 0
	switch {
	case as.log:
		a.Scale, a.Tick.Marker = plot.LogScale{}, plot.TickerFunc(roundLogTicks)
	default:
		a.Tick.Marker = plot.TickerFunc(roundTicks)
	}
	if as.at != nil {
		a.Tick.Marker = plot.ConstantTicks(ticksAt(as.at...))
	}
}

func ticksAt(values ...float64) []plot.Tick {
	var all []plot.Tick
	for _, v := range values {
		all = append(all, plot.Tick{Value: v, Label: number(v)})
	}
	return all
}

// roundTicks are four to eight multiples of 1, 2 or 5 times a power of ten.
func roundTicks(low, high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, n := range []float64{5, 2} {
		if (high-low)/(n*step) >= 4 {
			step *= n
			break
		}
	}
	var all []float64
	for v := math.Ceil(low/step) * step; v <= high*(1+1e-9); v += step {
		all = append(all, v)
	}
	return ticksAt(all...)
}

// roundLogTicks are 1, 2 and 5 times powers of ten.
func roundLogTicks(low, high float64) []plot.Tick {
	var all []float64
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, n := range []float64{1, 2, 5} {
			if v := n * power; v >= low*(1-1e-9) && v <= high*(1+1e-9) {
				all = append(all, v)
			}
		}
	}
	return ticksAt(all...)
}

// roundDown and roundUp return the nearest 1, 2 or 5 times a power of ten.
func roundDown(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{5, 2} {
		if n*power <= x {
			return n * power
		}
	}
	return power
}

func roundUp(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= x {
			return n * power
		}
	}
	return 10 * power
}

// number writes three digits, and separates thousands.
func number(x float64) string {
	if x == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(x)))))
	scale := math.Pow(10, float64(digits))
	s := strconv.FormatFloat(math.Round(x*scale)/scale, 'f', -1, 64)
	whole := len(s)
	for i := range s {
		if s[i] == '.' {
			whole = i
		}
	}
	for i := whole - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// grid draws a line at each tick of an axis.
type grid struct {
	page       *page
	horizontal bool // lines, at the ticks of the vertical axis
}

// Plot implements plot.Plotter.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	style := draw.LineStyle{Color: g.page.grid, Width: 1}
	if g.horizontal {
		for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			c.StrokeLine2(style, c.Min.X, toY(t.Value), c.Max.X, toY(t.Value))
		}
		return
	}
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		c.StrokeLine2(style, toX(t.Value), c.Min.Y, toX(t.Value), c.Max.Y)
	}
}
