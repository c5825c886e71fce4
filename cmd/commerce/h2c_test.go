package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// newH2C returns a client that speaks HTTP/2 without TLS, on one connection.
func newH2C(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestH2C_IsOffByDefault(t *testing.T) {
	t.Parallel()
	demo := start(t, "demo")
	a, err := demo.callBy(newH2C(t), "", "GET", "/cart", "")
	assert.That(t, err != nil, "got %d", a.Status)
}

// Responses of many sizes share a connection. Each is complete, also one that HTTP/1.1 would
// hold back.
func TestH2C_ServesManyRequestsOnOneConnection(t *testing.T) {
	t.Parallel()
	demo := start(t, "demo", "H2C=on")
	client := newH2C(t)
	token := strings.Repeat("t", 22)
	for line := range 20 {
		body := fmt.Sprintf(`{"product_id":5,"fields":{"Account email":"%d@example.com"}}`, line)
		a, err := demo.callBy(client, token, "POST", "/cart/add", body)
		assert.Require(t, err == nil && a.Status == http.StatusOK, "add: %v, %d %s", err, a.Status, a.Body)
	}
	var running sync.WaitGroup
	for i := range 200 {
		running.Go(func() {
			path, want := "/cart", 20
			if i%2 == 0 {
				path, want = "/cart/count", 0
			}
			a, err := demo.callBy(client, token, "GET", path, "")
			assert.That(t, err == nil && a.Status == http.StatusOK && len(a.Data.Items) == want, "%v %d", err, a.Status)
		})
	}
	running.Wait()
	assert.Equal(t, len(demo.mustCall(t, token, "GET", "/cart", "").Data.Items), 20, "HTTP/1.1: items")
}

// On SIGTERM every request is answered, or refused before it was begun.
func TestH2C_FinishesRequestsOnSIGTERM(t *testing.T) {
	t.Parallel()
	serve := startServe(t, seeded(t), "H2C=on", "RATE_LIMIT=off")
	client := newH2C(t)
	token := "made-up-cart-token-" + strings.Repeat("t", 22)
	serve.mustCall(t, token, "GET", "/cart", "")
	var applied atomic.Int64
	var stop atomic.Bool
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for !stop.Load() {
				a, err := serve.callBy(client, token, "PATCH", "/cart/items/1", `{"quantity":1}`)
				if err != nil {
					assert.That(t, strings.Contains(err.Error(), "connection refused"), "during the stop: %v", err)
					return
				}
				assert.That(t, a.Status < 500 || a.Status == http.StatusServiceUnavailable, "got %d %s", a.Status, a.Body)
				applied.Add(1)
			}
		})
	}
	for applied.Load() < 100 && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	serve.end(t)
	stop.Store(true)
	running.Wait()
}
