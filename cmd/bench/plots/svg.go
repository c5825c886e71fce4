package plots

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Sizes in pixels.
const (
	width, height = 800, 420
	margin        = 18
	lineHeight    = 20
)

// style gives a plot the colors of a light or a dark page. Classes a and b are the colors of the service
// and of floors.
const style = `
	:root { color-scheme: light dark; --paper: #fff; --ink: #1f2328; --weak: #59636e; --grid: #d1d9e0; --a: #0969da; --b: #8c959f }
	@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #f0f6fc; --weak: #9198a1; --grid: #3d444d; --a: #4493f8; --b: #768390 } }
	text { font: 13px sans-serif; fill: var(--ink) } .title { font: bold 16px sans-serif } .weak { fill: var(--weak) } .end { text-anchor: end } .mid { text-anchor: middle }
	.paper { fill: var(--paper) } .grid { stroke: var(--grid) } .ink { stroke: var(--ink) }
	.a { fill: var(--a) } .b { fill: var(--b) } .pale { opacity: 0.45 } .band { opacity: 0.2 }
	polyline { fill: none !important; stroke-width: 2 } polyline.a { stroke: var(--a) } polyline.b { stroke: var(--b) }
`

// page is an SVG document.
type page struct{ strings.Builder }

// newPage begins a document with a title, and a note below it.
func newPage(title, note string) *page {
	p := &page{}
	fmt.Fprintf(p, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" role=\"img\">\n<title>%s</title>\n<style>%s</style>\n",
		width, height, html.EscapeString(title), style)
	p.box("paper", 0, 0, width, height)
	p.text("title", margin, margin+14, title)
	p.text("weak", margin, margin+14+lineHeight, note)
	return p
}

func (p *page) box(class string, x, y, w, h float64) {
	fmt.Fprintf(p, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", class, x, y, w, h)
}

func (p *page) text(class string, x, y float64, words string) {
	fmt.Fprintf(p, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, x, y, html.EscapeString(words))
}

func (p *page) stroke(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(p, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2)
}

// shape draws a polyline or a polygon through points.
func (p *page) shape(kind, class string, points [][2]float64) {
	fmt.Fprintf(p, "<%s class=\"%s\" points=\"", kind, class)
	for _, at := range points {
		fmt.Fprintf(p, "%.1f,%.1f ", at[0], at[1])
	}
	p.WriteString("\"/>\n")
}

// legend explains colors, in one line. Each entry is a class and a name.
func (p *page) legend(entries ...[2]string) {
	x := float64(margin)
	for _, e := range entries {
		p.box(e[0], x, 62, 11, 11)
		p.text("", x+17, 72, e[1])
		x += 17 + 22 + 7*float64(len(e[1])) // about the width of the words
	}
}

// scale maps values to pixels.
type scale struct {
	low, high float64 // values
	from, to  float64 // pixels
	log       bool
}

func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// ticks are 1, 2 and 5 times powers of ten on a logarithmic scale, otherwise four to eight
// multiples of one of them.
func (s scale) ticks() []float64 {
	var all []float64
	if s.log {
		for power := math.Pow(10, math.Floor(math.Log10(s.low))); power <= s.high; power *= 10 {
			for _, n := range []float64{1, 2, 5} {
				if v := n * power; v >= s.low && v <= s.high {
					all = append(all, v)
				}
			}
		}
		return all
	}
	step := math.Pow(10, math.Floor(math.Log10((s.high-s.low)/4)))
	for _, n := range []float64{5, 2} {
		if (s.high-s.low)/(n*step) >= 4 {
			step *= n
			break
		}
	}
	for v := s.low; v <= s.high*(1+1e-9); v += step {
		all = append(all, v)
	}
	return all
}

// number writes three digits, and separates thousands.
func number(x float64) string {
	if x == 0 {
		return "0"
	}
	scale := math.Pow(10, max(0, 2-math.Floor(math.Log10(math.Abs(x)))))
	s := strconv.FormatFloat(math.Round(x*scale)/scale, 'f', -1, 64)
	whole, _, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
