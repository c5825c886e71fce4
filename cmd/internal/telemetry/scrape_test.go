package telemetry

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// scrape returns the values of /metrics by series.
func (m *Metrics) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	values := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		series, text, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			values[series+"}"] = value
		}
	}
	return values
}

// commands returns how many commands were counted under a name.
func (m *Metrics) commands(t *testing.T, name string) float64 {
	t.Helper()
	return m.scrape(t)[`commerce_redis_command_duration_seconds_count{command="`+name+`"}`]
}

// failures returns the kinds of failures that were counted for a dependency.
func (m *Metrics) failures(t *testing.T, dependency string) map[string]float64 {
	t.Helper()
	kinds := map[string]float64{}
	for series, value := range m.scrape(t) {
		if kind, ok := strings.CutPrefix(series, "commerce_"+dependency+`_errors_total{kind="`); ok && value > 0 {
			kinds[strings.TrimSuffix(kind, `"}`)] = value
		}
	}
	return kinds
}
