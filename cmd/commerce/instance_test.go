package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"commerce/cart/redisstore"
	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

// instance is the cart API of `serve`, running in this process.
type instance struct{ URL string }

// startInstance starts an instance on a seeded database and the shared Redis.
func startInstance(t *testing.T, databaseURL string) instance {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	rdb, err := connect.Redis(asService(t, ephemeral.Redis(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	db, err := databaseSettings{URL: databaseURL}.openMigrated(t.Context(), connect.PostgresConfig{MaxConns: catalogConns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	catalog := openCatalog(db, nil, log)
	t.Cleanup(catalog.listen(context.WithoutCancel(t.Context()), func(context.Context) {}))
	handler, err := server.Assemble(server.Parts{
		Redis: rdb, Catalog: catalog.products, Coupons: catalog.products, Stores: catalog.stores,
		CartTTL:     redisstore.TTLs{Guest: time.Hour, Customer: time.Hour},
		CartLimits:  defaultLimits(),
		RedisBudget: 5 * time.Second, // tests of this instance let only Postgres fail
		Config:      server.Config{Log: log},
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return instance{web.URL}
}

// answer is a decoded response.
type answer struct {
	Status int
	Header http.Header
	Body   string
	Code   string
	Data   struct {
		CartToken string `json:"cart_token"`
		Items     []struct {
			UnitPrice json.Number `json:"unit_price"`
		}
	}
}

// call sends a request of a guest of the sample's first store. An empty token means a new
// guest.
func (i instance) call(token, method, path, body string) (answer, error) {
	request, err := http.NewRequest(method, i.URL+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("X-Public-Key", "pk_demo")
	if token != "" {
		request.Header.Set("X-Cart-Token", token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{Status: response.StatusCode, Header: response.Header, Body: string(content)}
	if err := json.Unmarshal(content, &a); err != nil {
		return a, fmt.Errorf("%s %s: %w: %s", method, path, err, content)
	}
	return a, nil
}

// served repeats call for at most 10 s while the response is a 503, which means that
// nothing was changed. On a busy machine, the first read of something can take longer than
// a request waits.
func (i instance) served(token, method, path, body string) (answer, error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		a, err := i.call(token, method, path, body)
		if err != nil || a.Status != http.StatusServiceUnavailable || time.Since(began) > 10*time.Second {
			return a, err
		}
	}
}

// mustCall is served for a request that must succeed with status 200.
func (i instance) mustCall(t *testing.T, token, method, path, body string) answer {
	t.Helper()
	a, err := i.served(token, method, path, body)
	if err != nil || a.Status != http.StatusOK {
		t.Fatalf("%s %s %s: %v, %d %s", method, path, body, err, a.Status, a.Body)
	}
	return a
}
