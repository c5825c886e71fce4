package plots

import (
	"fmt"
	"strings"

	"commerce/cmd/bench/results"
)

// latencyLines shows the 99th percentile at constant rates of arrival.
func latencyLines(r results.Report) (drawing, bool) {
	c, ok := curveOf(r, "latency", "p99")
	if !ok || len(c.Series) < 2 || len(c.Series[1].Points) < 3 {
		return nil, false
	}
	least, own := c.Series[0].Points[2], c.Series[1].Points[2]
	return checked(lines{
		title: fmt.Sprintf("At %s reads per second, 99 of 100 take less than %s ms (floor-get: %s ms)",
			number(own.X), number(own.Median), number(least.Median)),
		note: "Requests arrive at a constant rate, 10 % to 90 % of the service's maximum throughput. Bands: range of the rounds.",
		x:    axis{label: c.X}, y: axis{label: "99th percentile of latency (ms, logarithmic)", log: true},
		curves: curves(c, map[string]role{floorGet: floor, "GET /cart": service}),
	})
}

// memoryLines shows the bytes of a cart by its lines.
func memoryLines(r results.Report) (drawing, bool) {
	c, ok := curveOf(r, "memory", "memory")
	if !ok || len(c.Series[0].Points) < 5 {
		return nil, false
	}
	points := c.Series[0].Points
	last := points[len(points)-1]
	return checked(lines{
		title: fmt.Sprintf("A cart with 5 lines takes %s bytes in Redis, one with %.0f lines takes %s", number(points[4].Median), last.X, number(last.Median)),
		note:  "All keys of a guest's cart, as MEMORY USAGE counts them. The published client's adds carry X-Timestamp.",
		x:     axis{label: "lines in the cart"}, y: axis{label: "Redis memory of the cart (bytes)"},
		curves: curves(c, map[string]role{"plain adds": service, "published client": variant}),
	})
}

// pageLines shows the cost of a page by its number.
func pageLines(r results.Report) (drawing, bool) {
	c, ok := curveOf(r, "list", "pages")
	if !ok || len(c.Series) < 2 || len(c.Series[0].Points) < 2 {
		return nil, false
	}
	number1, link := c.Series[0], c.Series[1]
	deepest := len(link.Points) - 1
	return checked(lines{
		title: fmt.Sprintf("By link, page %s costs %.2f × page 1; by number, %.1f ×", number(link.Points[deepest].X),
			link.Points[deepest].Median/link.Points[0].Median, number1.Points[deepest].Median/number1.Points[0].Median),
		note: "Subscriptions of a store with a tenth of all rows, 15 on a page. Bands: range of the rounds.",
		x:    axis{label: "page (logarithmic)", log: true, at: xs(link)}, y: axis{label: "CPU time, service and Postgres (µs, logarithmic)", log: true},
		curves: curves(c, map[string]role{"by link": service, "by number": variant}),
	})
}

// readerLines shows what a read costs Redis by the number of concurrent readers.
func readerLines(r results.Report) (drawing, bool) {
	c, ok := curveOf(r, "readers", "readers")
	if !ok || len(c.Series) < 3 || len(c.Series[2].Points) < 2 {
		return nil, false
	}
	single, batched := c.Series[1], c.Series[2]
	at := len(batched.Points) - 2 // the usual number of readers
	return checked(lines{
		title: fmt.Sprintf("With %.0f readers, a read takes %s µs of Redis CPU time batched, %s µs one by one",
			batched.Points[at].X, number(batched.Points[at].Median), number(single.Points[at].Median)),
		note: "GET /cart of five lines. Bands: range of the rounds.",
		x:    axis{label: c.X + " (logarithmic)", log: true, at: xs(single)}, y: axis{label: "CPU time of Redis per read (µs, logarithmic)", log: true},
		curves: curves(c, map[string]role{floorGet: floor, "one by one": variant, "batched": service}),
	})
}

func checked(l lines) (drawing, bool) { return l, l.drawable() }

func curveOf(r results.Report, benchmark, name string) (results.Curve, bool) {
	b, _ := r.Benchmark(benchmark)
	return b.Curve(name)
}

// curves gives each series its role. A series of a second service has the role of the
// first one, and is dashed.
func curves(c results.Curve, roles map[string]role) []curve {
	var all []curve
	for _, s := range c.Series {
		name, against := strings.CutSuffix(s.Name, " [against]")
		all = append(all, curve{Series: s, as: roles[name], dashed: against})
	}
	return all
}

func xs(s results.Series) []float64 {
	var all []float64
	for _, p := range s.Points {
		all = append(all, p.X)
	}
	return all
}
