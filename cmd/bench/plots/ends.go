package plots

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ends writes the names of lines to the right of their last points.
type ends struct {
	page *page
	all  []end
}

type end struct {
	x, y  float64
	name  string
	color color.Color
}

func (e ends) style(c color.Color) text.Style {
	s := e.page.style(labelSize, c, true)
	s.YAlign = text.YCenter
	return s
}

// Plot implements plot.Plotter. Names that would overlap move apart.
func (e ends) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	sorted := slices.SortedFunc(slices.Values(e.all), func(a, b end) int { return int(toY(a.y) - toY(b.y)) })
	below := c.Min.Y - lineHeight
	for _, one := range sorted {
		y := max(toY(one.y), below+labelSize+4)
		below = y
		c.FillText(e.style(one.color), vg.Point{X: toX(one.x) + 9, Y: y}, one.name)
	}
}

// GlyphBoxes implements plot.GlyphBoxer. It keeps room for the names.
func (e ends) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	var all []plot.GlyphBox
	for _, one := range e.all {
		all = append(all, plot.GlyphBox{
			X: p.X.Norm(one.x), Y: p.Y.Norm(one.y),
			Rectangle: vg.Rectangle{Max: vg.Point{X: 12 + e.style(one.color).Width(one.name)}},
		})
	}
	return all
}
