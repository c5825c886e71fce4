package main

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// metric returns the value of a time series; 0 if it does not exist.
func (r *running) metric(t *testing.T, series string) float64 {
	t.Helper()
	for line := range strings.Lines(r.send(t, "GET", r.admin+"/metrics", "").Body) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			return assert.Must(strconv.ParseFloat(strings.TrimSpace(text), 64))(t)
		}
	}
	return 0
}

// browse makes each kind of call once, so that each metric has a value.
func (r *running) browse(t *testing.T, apiToken string) {
	t.Helper()
	cart := r.mustCall(t, "", "POST", "/cart/add", `{"product_id":1}`).Data.CartToken
	for _, c := range []struct{ method, path, body, token string }{
		{"POST", "/cart/add", `{"product_id":3}`, ""},         // refused
		{"POST", "/cart/add", `{"product_id":2,"qty":3}`, ""}, // the rest of the stock: a warning
		{"GET", "/cart/validate", "", ""},
		{"POST", "/cart/coupon", `{"coupon":"OLD"}`, ""},
		{"GET", "/cart", "", "not.a.token"},
		{"GET", "/subscriptions", "", apiToken},
		{"GET", "/subscriptions/1", "", apiToken},
		{"GET", "/subscriptions/summary", "", apiToken},
		{"GET", "/subscriptions/changes", "", apiToken},
	} {
		authorization := ""
		if c.token != "" {
			authorization = "Bearer " + c.token
		}
		r.send(t, c.method, c.path, c.body, "X-Public-Key", "pk_demo", "X-Cart-Token", cart, "Authorization", authorization)
	}
}

// documented returns the names of the metrics that docs/metrics.md lists, sorted.
func documented(t *testing.T) []string {
	t.Helper()
	return slices.Sorted(captured("(?m)^- `(commerce_[a-z_]+)[{`]", source(t, "docs/metrics.md")))
}

// captured yields the first group of all matches.
func captured(pattern, text string) func(yield func(string) bool) {
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[match[1]] = true
	}
	return maps.Keys(found)
}

// hostOf returns the host and port of a URL.
func hostOf(t *testing.T, rawURL string) string { t.Helper(); return parsed(t, rawURL).Host }

func parsed(t *testing.T, rawURL string) *url.URL {
	t.Helper()
	return assert.Must(url.Parse(rawURL))(t)
}

func TestMetrics_OfServeAreThoseInTheDocumentation(t *testing.T) {
	t.Parallel()
	database := seeded(t)
	serve := startServe(t, database, "DATABASE_REPLICA_URL="+database)
	eventually(t, func() string {
		if state := serve.ready(t).Checks["replica "+hostOf(t, database)]; state != "primary" {
			return "the state of the primary as a replica is " + state
		}
		return ""
	})
	serve.browse(t, storeToken(t, database))
	serve.log.wait(t, 0, "commerce check") // sets its metrics first
	page := serve.send(t, "GET", serve.admin+"/metrics", "").Body
	exposed := slices.Sorted(captured(`(?m)^# TYPE (commerce_[a-z_]+) `, page))
	assert.Equal(t, exposed, documented(t), "docs/metrics.md lists other metrics than serve has (-docs +serve)")
	statements := slices.Sorted(captured(`commerce_postgres_statement_duration_seconds_count\{statement="([^"]*)"`, page))
	assert.That(t, !slices.Contains(statements, "other") && len(statements) >= 10,
		"statements without a name, or too few: %q", statements)
}
