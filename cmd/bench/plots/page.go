package plots

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"strings"

	xfnt "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes in pixels.
const (
	width, height = 800, 420
	margin        = 18
	titleSize     = 17
	noteSize      = 13
	labelSize     = 13
	lineHeight    = 20
)

// page is an SVG document with a title, a note and a plot.
type page struct {
	theme
	title string
	to    *paper
	rest  draw.Canvas // what is still empty
}

// paper remembers the width of each text that is drawn on it.
type paper struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString implements vg.Canvas.
func (p *paper) FillString(f font.Face, at vg.Point, words string) {
	p.widths = append(p.widths, f.Width(words))
	p.Canvas.FillString(f, at, words)
}

func newPage(t theme) *page {
	to := &paper{Canvas: vgsvg.New(width, height)}
	p := &page{theme: t, to: to, rest: draw.New(to)}
	p.rest.SetColor(t.background)
	p.rest.Fill(p.rest.Rectangle.Path())
	p.rest = draw.Crop(p.rest, margin, -margin, margin, -margin)
	return p
}

// headline writes a title, and a note with the legend below it.
func (p *page) headline(title, note string, legend ...entry) {
	p.title = title
	p.line(p.style(titleSize, p.theme.text, true), title)
	if note != "" {
		p.line(p.style(noteSize, p.weak, false), note)
	}
	p.legend(legend)
	p.rest.Max.Y -= 10
}

func (p *page) line(s text.Style, words string) {
	p.rest.FillText(s, vg.Point{X: p.rest.Min.X, Y: p.rest.Max.Y}, words)
	p.rest.Max.Y -= lineHeight
	if s.Font.Size == titleSize {
		p.rest.Max.Y -= 4
	}
}

// entry explains a color.
type entry struct {
	name  string
	color color.Color
}

// legend writes the entries in one line.
func (p *page) legend(entries []entry) {
	const box = 11
	style := p.style(noteSize, p.theme.text, false)
	x, y := p.rest.Min.X, p.rest.Max.Y-2
	for _, e := range entries {
		p.rest.SetColor(e.color)
		p.rest.Fill(vg.Rectangle{Min: vg.Point{X: x, Y: y - box}, Max: vg.Point{X: x + box, Y: y}}.Path())
		p.rest.FillText(style, vg.Point{X: x + box + 6, Y: y + 2}, e.name)
		x += box + 6 + style.Width(e.name) + 22
	}
	if len(entries) > 0 {
		p.rest.Max.Y -= lineHeight
	}
}

// style is a style of text that begins at its point and hangs below it.
func (p *page) style(size vg.Length, c color.Color, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = xfnt.WeightBold
	}
	return text.Style{Color: c, Font: f, XAlign: text.XLeft, YAlign: text.YTop, Handler: plot.DefaultTextHandler}
}

// svg returns the document. Its text stays text. Where a reader does not have the font,
// another one takes the same width.
func (p *page) svg() []byte {
	var out bytes.Buffer
	_, _ = p.to.WriteTo(&out) // a buffer takes everything
	text := strings.NewReplacer(
		`width="800pt" height="420pt"`, `width="800" height="420" role="img"`,
		`xmlns:xlink="http://www.w3.org/1999/xlink">`, `xmlns:xlink="http://www.w3.org/1999/xlink"><title>`+html.EscapeString(p.title)+`</title>`,
		"font-family:Liberation Sans;font-variant:normal;", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;",
		"font-weight:normal;", "", "font-style:normal;", "",
	).Replace(out.String())
	parts := strings.Split(text, "<text ")
	for i, w := range p.to.widths {
		parts[i+1] = fmt.Sprintf(`textLength="%.1f" lengthAdjust="spacingAndGlyphs" `, w.Points()) + parts[i+1]
	}
	return []byte(strings.Join(parts, "<text "))
}
