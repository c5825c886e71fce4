package plots

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"commerce/cmd/bench/results"
)

// lines is a plot of curves. The line is the median, the band around it is the range of
// the rounds.
type lines struct {
	title, note string
	x, y        axis
	curves      []curve
}

// curve is one line with its name at its end.
type curve struct {
	results.Series
	as     role
	dashed bool
}

func (l lines) draw(on *page) {
	on.headline(l.title, l.note)
	p := on.newPlot(l.x, l.y)
	p.Add(grid{on, true})
	ends := ends{page: on}
	for _, c := range l.curves {
		color := on.series[c.as].strong
		band, _ := plotter.NewPolygon(c.band()) // fails only for coordinates that are not numbers
		band.Color, band.LineStyle.Width = faint(color), 0
		line, points, _ := plotter.NewLinePoints(c.medians())
		line.Color, line.Width = color, 2.2
		if c.dashed {
			line.Dashes = []vg.Length{7, 4}
		}
		points.Color, points.Shape, points.Radius = color, draw.CircleGlyph{}, 3
		p.Add(band, line)
		if len(c.Points) <= 20 {
			p.Add(points)
		}
		last := c.Points[len(c.Points)-1]
		ends.all = append(ends.all, end{last.X, last.Median, c.Name, color})
	}
	p.Add(ends)
	l.scale(p)
	p.Draw(on.rest)
}

// scale rounds the ends of the axes. A linear vertical axis begins at 0.
func (l lines) scale(p *plot.Plot) {
	if l.y.log {
		p.Y.Min, p.Y.Max = roundDown(p.Y.Min), roundUp(p.Y.Max)
	} else {
		p.Y.Min, p.Y.Max = 0, p.Y.Max*1.05
	}
	if !l.x.log {
		p.X.Min = 0
	}
}

func (c curve) medians() plotter.XYs {
	var all plotter.XYs
	for _, p := range c.Points {
		all = append(all, plotter.XY{X: p.X, Y: p.Median})
	}
	return all
}

// band is the outline of the range: along the maxima, and back along the minima.
func (c curve) band() plotter.XYs {
	var all plotter.XYs
	for _, p := range c.Points {
		all = append(all, plotter.XY{X: p.X, Y: p.Max})
	}
	for i := range c.Points {
		p := c.Points[len(c.Points)-1-i]
		all = append(all, plotter.XY{X: p.X, Y: p.Min})
	}
	return all
}

// drawable reports whether all values fit on the axes: a logarithmic axis has no zero.
func (l lines) drawable() bool {
	for _, c := range l.curves {
		if len(c.Points) == 0 {
			return false
		}
		for _, p := range c.Points {
			if math.IsNaN(p.Median) || l.y.log && p.Min <= 0 || l.x.log && p.X <= 0 {
				return false
			}
		}
	}
	return len(l.curves) > 0
}
