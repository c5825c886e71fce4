package plots

import (
	"fmt"

	"commerce/cmd/bench/results"
)

// shown is a case in a bar plot.
type shown struct {
	benchmark, name string // in the results
	label           string
	as              role
}

// Names of cases in the results.
const (
	floorGet  = "floor-get"
	floorAdd  = "floor-add"
	usualRead = "guest, 5 lines"
)

func shownCases() []shown {
	return []shown{
		{"get", "floor-ping", "floor-ping: fixed body", floor},
		{"get", floorGet, "floor-get: read, encode", floor},
		{"get", usualRead, "GET /cart", service},
		{"get", "guest, 5 lines, 304", "GET /cart, answered 304", service},
		{"count", usualRead, "GET /cart/count", service},
		{"add", floorAdd, "floor-add: change, read, encode", floor},
		{"add", "add", "POST /cart/add", service},
		{"add", "patch", "PATCH /cart/items", service},
	}
}

// cpuBars shows the CPU time per request beside the floors.
func cpuBars(r results.Report) (drawing, bool) {
	get, ok := ratio(r, "get", usualRead, floorGet)
	add, ok2 := ratio(r, "add", "add", floorAdd)
	b := bars{
		title: fmt.Sprintf("GET /cart takes %.2f × the CPU time of a minimal program, POST /cart/add %.2f ×", get, add),
		note:  "A cart of five lines. A floor is a minimal program for the same task. Thin lines: range of the rounds.",
		label: "CPU time per request (µs)", unit: " µs", parts: true,
	}
	for _, s := range shownCases() {
		c, found := caseOf(r, s)
		ok = ok && found
		b.all = append(b.all, bar{s.label, s.as, c.Server.Median, c.Store.Median, c.Figure(results.CPU)})
	}
	return b, ok && ok2
}

// throughputBars shows requests per second beside the floors.
func throughputBars(r results.Report) (drawing, bool) {
	read, ok := caseOf(r, shown{benchmark: "get", name: usualRead})
	least, ok2 := caseOf(r, shown{benchmark: "get", name: floorGet})
	b := bars{
		title: fmt.Sprintf("%s reads of a cart per second; a minimal program reaches %s", number(read.Rate.Median), number(least.Rate.Median)),
		note:  fmt.Sprintf("%d connections. Redis and the clients use the same %d CPUs. Thin lines: range of the rounds.", r.Connections, r.Machine.CPUs),
		label: "requests per second",
	}
	for _, s := range shownCases() {
		c, found := caseOf(r, s)
		ok = ok && found
		b.all = append(b.all, bar{s.label, s.as, c.Rate.Median, 0, c.Rate})
	}
	return b, ok && ok2
}

func caseOf(r results.Report, s shown) (results.Case, bool) {
	b, _ := r.Benchmark(s.benchmark)
	return b.Case(s.name)
}

// ratio returns the median ratio of CPU between two cases.
func ratio(r results.Report, benchmark, name, of string) (float64, bool) {
	c, _ := caseOf(r, shown{benchmark: benchmark, name: name})
	for _, one := range c.Ratios {
		if one.Of == of && one.Cost == results.CPU {
			return one.Median, true
		}
	}
	return 0, false
}
