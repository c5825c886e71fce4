package server_test

import (
	"crypto/rand"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
)

// metricsPage returns the commerce_ series of /metrics, one a line.
func metricsPage(t *testing.T, m *telemetry.Metrics) []string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	var series []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "commerce_") {
			series = append(series, line)
		}
	}
	return series
}

// metric returns the value of a series, 0 if there is none.
func metric(t *testing.T, m *telemetry.Metrics, series string) float64 {
	t.Helper()
	for _, line := range metricsPage(t, m) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			value := must(strconv.ParseFloat(strings.TrimSpace(text), 64))(t)
			return value
		}
	}
	return 0
}

// maxSeries bounds the series of an instance, whatever callers send. About 500 exist from the
// start. Each combination of method, route and status that occurs adds 15.
const maxSeries = 2500

func TestMetrics_HaveNoLabelsFromCallers(t *testing.T) {
	var m *telemetry.Metrics
	s := realShop(t, func(p *server.Parts) { m = p.Metrics })
	const planted = "planted"
	paths := []string{"/", "/cart", "/cart/count", "/cart/add", "/cart/items/", "/cart/coupon", "/subscriptions", "/subscriptions/", "/cart/validate?x="}
	methods := []string{"GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT", planted}
	for i := range 600 {
		mark := planted + rand.Text()
		method, path := methods[i%len(methods)], paths[i%len(paths)]
		if method == planted {
			method = mark
		}
		if i%2 == 0 {
			path += mark
		}
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(`{"product_id":1,"coupon":"`+mark+`"}`))
		for name, value := range map[string]string{
			"X-Cart-Token": mark, "X-Request-Id": mark, "Idempotency-Key": mark, "Content-Type": "application/json",
			"If-Match": `"` + mark + `"`, "Accept-Language": mark, "Origin": "https://" + mark,
		} {
			r.Header.Set(name, value)
		}
		switch i % 3 {
		case 0:
			r.Header.Set("X-Public-Key", mark)
		case 1:
			r.Header.Set("X-Public-Key", s.Key)
			r.Header.Set("Authorization", "Bearer "+mark)
		default:
			r.Header.Set("X-Public-Key", s.Key)
		}
		s.handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	page := metricsPage(t, m)
	for _, series := range page {
		assert(t, !strings.Contains(strings.ToLower(series), planted) && !strings.Contains(series, `store`+`="`), "a label comes from a caller, or names a store: %s", series)
	}
	assert(t, len(page) <= maxSeries, "%d series, want at most %d", len(page), maxSeries)
}

func TestMetrics_CountWhatHappensToCarts(t *testing.T) {
	var m *telemetry.Metrics
	s := realShop(t, func(p *server.Parts) { m = p.Metrics })
	guest := s.guest(t)
	guest.add(`{"product_id":1}`, "Idempotency-Key", "k")
	guest.add(`{"product_id":1}`, "Idempotency-Key", "k")
	guest.refused(409, "idempotency_conflict", "POST", "/cart/add", `{"product_id":2}`, "Idempotency-Key", "k")
	guest.refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":2}`, "If-Match", `"x.1"`)
	guest.refused(422, "product_inactive", "POST", "/cart/add", `{"product_id":3}`)
	guest.ok("GET", "/cart/validate", "")
	customer := guest.logIn("1")
	customer.cart()
	customer.withoutToken().add(`{"product_id":2,"qty":3}`)
	s.customer(t, "2").add(`{"product_id":2}`)
	s.Catalog.Delete(s.ID, 2)
	customer.withoutToken().refused(400, "cart_invalid", "GET", "/cart/validate", "")
	s.guest(t).refused(401, "unauthenticated", "GET", "/cart", "", "Authorization", "Bearer x")
	for series, want := range map[string]float64{
		`commerce_carts_created_total{owner="guest"}`:                             1,
		`commerce_carts_created_total{owner="customer"}`:                          1,
		`commerce_idempotent_replays_total`:                                       1,
		`commerce_conflicts_total{code="idempotency_conflict"}`:                   1,
		`commerce_conflicts_total{code="version_mismatch"}`:                       1,
		`commerce_cart_refusals_total{code="product_inactive",route="/cart/add"}`: 1,
		`commerce_merges_total{outcome="merged"}`:                                 1,
		`commerce_merge_duration_seconds_count`:                                   1,
		`commerce_cart_validations_total{result="valid"}`:                         1,
		`commerce_cart_validations_total{result="invalid"}`:                       1,
		`commerce_cart_validation_issues_total{code="product_not_found"}`:         1,
		`commerce_bad_credentials_total{kind="malformed"}`:                        1,
		`commerce_http_requests_in_flight`:                                        0,
	} {
		equal(t, metric(t, m, series), want, "%s", series)
	}
}
