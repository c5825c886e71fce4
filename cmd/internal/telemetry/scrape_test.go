package telemetry

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/inspect"
)

func (m *Metrics) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	values := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil && at > 0 {
			values[line[:at]] = value
		}
	}
	return values
}

func (m *Metrics) commands(t *testing.T, name string) float64 {
	t.Helper()
	return m.scrape(t)[`commerce_redis_command_duration_seconds_count{command="`+name+`"}`]
}

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

// A check of a server that does not answer has no findings, and does not say that it has no replicas.
func TestServersChecked_CountsFindingsAndReplicas(t *testing.T) {
	t.Parallel()
	m := New("test")
	replicas := func(level inspect.Level, connected int) inspect.Finding {
		return inspect.Finding{Code: "redis_replicas", Level: level, Connected: connected}
	}
	for _, test := range []struct {
		found              []inspect.Finding
		serious, connected float64
	}{
		{[]inspect.Finding{replicas(inspect.OK, 2), replicas(inspect.OK, 1), replicas(inspect.Unknown, -1)}, 0, 1},
		{[]inspect.Finding{replicas(inspect.Serious, 0), replicas(inspect.Serious, 0)}, 2, 0},
		{[]inspect.Finding{replicas(inspect.OK, 3)}, 0, 3},
		{[]inspect.Finding{{Code: "redis_answers", Level: inspect.Serious}}, 0, 3},
	} {
		m.ServersChecked(test.found)
		got := m.scrape(t)
		assert.Equal(t, got[`commerce_check_findings{code="redis_replicas",level="serious"}`], test.serious, "%+v: serious findings", test.found)
		assert.Equal(t, got["commerce_redis_connected_replicas"], test.connected, "%+v: replicas", test.found)
	}
}
