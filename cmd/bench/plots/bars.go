package plots

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"commerce/cmd/bench/results"
)

// bars is a plot of horizontal bars, the first one on top.
type bars struct {
	title, note string
	label       string // of the axis, with the unit
	unit        string // after each value
	parts       bool   // each bar has two parts: the program and Redis
	all         []bar
}

// bar is the median of one case. The line on it is the range of the rounds.
type bar struct {
	name        string
	as          role
	first, rest float64 // the parts
	whole       results.Figure
}

func (b bars) draw(on *page) {
	var legend []entry
	for _, e := range []struct {
		name string
		as   role
	}{{"service", service}, {"floor", floor}} {
		legend = append(legend, entry{e.name, on.series[e.as].strong})
		if b.parts {
			legend = append(legend, entry{e.name + "'s Redis", on.series[e.as].weak})
		}
	}
	on.headline(b.title, b.note, legend...)
	p := on.newPlot(axis{label: b.label}, axis{})
	var names []string
	var longest float64
	for i := range b.all {
		names = append(names, b.all[len(b.all)-1-i].name)
		longest = max(longest, b.all[i].whole.Max)
	}
	p.NominalY(names...)
	p.Y.Tick.Label.Color, p.Y.Tick.Label.Font = on.theme.text, on.style(labelSize, nil, false).Font
	p.Y.LineStyle.Width, p.Y.Tick.Length = 0, 0
	p.Add(grid{on, false}, rows{on, b})
	p.X.Min, p.X.Max = 0, longest*1.14
	p.Y.Min, p.Y.Max = -0.6, float64(len(b.all))-0.4
	p.Draw(on.rest)
}

// rows draws the bars.
type rows struct {
	page *page
	bars
}

// Plot implements plot.Plotter.
func (r rows) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	half := 0.33 * (toY(1) - toY(0))
	for i, b := range r.all {
		y := toY(float64(len(r.all) - 1 - i))
		box := func(from, to float64, as pair, weak bool) {
			c.SetColor(as.strong)
			if weak {
				c.SetColor(as.weak)
			}
			c.Fill(vg.Rectangle{Min: vg.Point{X: toX(from), Y: y - half}, Max: vg.Point{X: toX(to), Y: y + half}}.Path())
		}
		colors := r.page.series[b.as]
		box(0, b.first, colors, false)
		box(b.first, b.first+b.rest, colors, true)
		c.StrokeLine2(draw.LineStyle{Color: r.page.theme.text, Width: 1.2}, toX(b.whole.Min), y, toX(b.whole.Max), y)
		s := r.page.style(labelSize, r.page.theme.text, true)
		s.YAlign = text.YCenter
		c.FillText(s, vg.Point{X: toX(max(b.whole.Max, b.first+b.rest)) + 8, Y: y + 2}, number(b.whole.Median)+r.unit)
	}
}
