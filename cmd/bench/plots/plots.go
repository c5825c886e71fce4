// Package plots draws the results of benchmarks as SVG files, which are light or dark like the
// reader's page.
package plots

import (
	"fmt"
	"os"
	"path/filepath"

	"commerce/cmd/bench/results"
)

// Draw writes a plot of each result that has one to a directory. A run may have measured only
// some of them.
func Draw(r results.Report, dir string) error {
	for name, plot := range map[string]func(results.Report) string{"cpu": cpu, "latency": latency} {
		drawn := plot(r)
		if drawn == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(drawn), 0o644); err != nil {
			return fmt.Errorf("plot %s: %w", name, err)
		}
	}
	return nil
}

// cpu shows the CPU time per request of the service beside that of the floors.
func cpu(r results.Report) string {
	shown := []struct{ benchmark, name, label, class string }{
		{"get", "floor-ping", "floor-ping: fixed body", "b"},
		{"get", "floor-get", "floor-get: read, encode", "b"},
		{"get", "guest, 5 lines", "GET /cart", "a"},
		{"get", "guest, 5 lines, 304", "GET /cart, answered 304", "a"},
		{"count", "guest, 5 lines", "GET /cart/count", "a"},
		{"add", "floor-add", "floor-add: change, read, encode", "b"},
		{"add", "add", "POST /cart/add", "a"},
		{"add", "patch", "PATCH /cart/items", "a"},
	}
	x := scale{from: 235, to: width - 90}
	for _, s := range shown {
		c := r.Benchmark(s.benchmark).Case(s.name)
		if c.Name == "" {
			return ""
		}
		x.high = max(x.high, c.Figure(results.Round.CPU).Max)
	}
	get, add := r.Benchmark("get").Case("guest, 5 lines").Ratios, r.Benchmark("add").Case("add").Ratios
	if len(get) == 0 || len(add) == 0 || x.high == 0 {
		return ""
	}
	p := newPage(fmt.Sprintf("GET /cart takes %.2f × the CPU time of a minimal program, POST /cart/add %.2f ×", get[0].Median, add[0].Median),
		"A cart of five lines. A floor is a minimal program for the same task. Thin lines: range of the rounds.")
	p.legend([2]string{"a", "service"}, [2]string{"a pale", "service's Redis"}, [2]string{"b", "floor"}, [2]string{"b pale", "floor's Redis"})
	const top, row = 92.0, 33.0
	bottom := top + row*float64(len(shown))
	for _, tick := range x.ticks() {
		p.stroke("grid", x.at(tick), top, x.at(tick), bottom)
		p.text("weak mid", x.at(tick), bottom+18, number(tick))
	}
	p.text("mid", (x.from+x.to)/2, bottom+40, "CPU time per request (µs)")
	for i, s := range shown {
		c, y := r.Benchmark(s.benchmark).Case(s.name), top+row*(float64(i)+0.5)
		whole, server := c.Figure(results.Round.CPU), c.Figure(results.Round.ServerCPU).Median
		p.text("end", x.from-8, y+4, s.label)
		p.box(s.class, x.from, y-10, x.at(server)-x.from, 20)
		p.box(s.class+" pale", x.at(server), y-10, max(0, x.at(whole.Median)-x.at(server)), 20)
		p.stroke("ink", x.at(whole.Min), y, x.at(whole.Max), y)
		p.text("", x.at(max(whole.Max, whole.Median))+8, y+4, number(whole.Median)+" µs")
	}
	return p.end()
}

func (p *page) end() string { p.WriteString("</svg>\n"); return p.String() }

// latency shows the 99th percentile at constant rates of arrival. It returns "" if a value is 0,
// which a very short turn may measure and a logarithmic axis cannot show.
func latency(r results.Report) string {
	cases := r.Benchmark("latency").Cases // of the floor and the service in turn, by rising rate
	if len(cases) < 6 {
		return ""
	}
	took := func(c results.Case) results.Figure {
		return c.Figure(func(r results.Round) float64 { return r.P99 })
	}
	rate := func(c results.Case) float64 { return c.Figure(results.Round.Throughput).Median }
	x := scale{from: 70, to: width - 2*margin}
	y := scale{from: height - 62, to: 112, log: true, low: took(cases[0]).Min}
	for _, c := range cases {
		x.high, y.low, y.high = max(x.high, rate(c)), min(y.low, took(c).Min), max(y.high, took(c).Max)
	}
	if y.low <= 0 {
		return ""
	}
	p := newPage(fmt.Sprintf("At %s reads per second, 99 of 100 take less than %s ms (floor-get: %s ms)",
		number(rate(cases[5])), number(took(cases[5]).Median), number(took(cases[4]).Median)),
		"Requests arrive at a constant rate, 10 % to 90 % of the service's maximum throughput. Bands: range of the rounds.")
	p.legend([2]string{"a", "GET /cart"}, [2]string{"b", "floor-get"})
	p.text("", margin, 98, "99th percentile of latency (ms, logarithmic)")
	for _, tick := range y.ticks() {
		p.stroke("grid", x.from, y.at(tick), x.to, y.at(tick))
		p.text("weak end", x.from-8, y.at(tick)+4, number(tick))
	}
	for _, tick := range x.ticks() {
		p.text("weak mid", x.at(tick), y.from+20, number(tick))
	}
	p.text("mid", (x.from+x.to)/2, y.from+42, "requests per second")
	for first, class := range []string{"b", "a"} {
		var line, band [][2]float64
		for i := first; i < len(cases); i += 2 {
			line = append(line, [2]float64{x.at(rate(cases[i])), y.at(took(cases[i]).Median)})
			band = append(band, [2]float64{x.at(rate(cases[i])), y.at(took(cases[i]).Max)})
		}
		for i := len(cases) - 2 + first; i >= 0; i -= 2 {
			band = append(band, [2]float64{x.at(rate(cases[i])), y.at(took(cases[i]).Min)})
		}
		p.shape("polygon", class+" band", band)
		p.shape("polyline", class, line)
	}
	return p.end()
}
