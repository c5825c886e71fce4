package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// instance is a process that serves the API.
type instance struct{ URL string }

// answer is a response.
type answer struct {
	Status int         `json:"-"`
	Header http.Header `json:"-"`
	Body   string      `json:"-"`

	Code, Message string // of JSON, as the following
	Data          struct {
		CartToken string `json:"cart_token"`
		Items     []struct {
			UnitPrice json.Number `json:"unit_price"`
		}
	}
}

// request sends a request and decodes JSON. Headers are name, value, …; "" is no value.
func request(ctx context.Context, client *http.Client, method, url, body string, headers ...string) (a answer, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		if pair[1] != "" {
			request.Header.Set(pair[0], pair[1])
		}
	}
	response, err := client.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	a = answer{Status: response.StatusCode, Header: response.Header, Body: string(content)}
	if err == nil && strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
		err = json.Unmarshal(content, &a)
	}
	if err == nil && client != http.DefaultClient && response.ProtoMajor != 2 {
		err = fmt.Errorf("%s instead of HTTP/2", response.Proto)
	}
	return a, err
}

// send is request for a path, or a URL.
func (i instance) send(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	if strings.HasPrefix(path, "/") {
		path = i.URL + path
	}
	a, err := request(t.Context(), http.DefaultClient, method, path, body, headers...)
	assert.Require(t, err == nil, "%s %s: %v: %s", method, path, err, a.Body)
	return a
}

// decoded is the JSON of a response.
func decoded[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	err := json.Unmarshal([]byte(a.Body), &v)
	assert.Require(t, err == nil, "%d %s: %v", a.Status, a.Body, err)
	return v
}

// call sends a request of a guest of the sample's first store. An empty token means a new
// guest.
func (i instance) call(token, method, path, body string) (answer, error) {
	return i.callBy(http.DefaultClient, token, method, path, body)
}

// callBy is call for a client, which speaks HTTP/2 if it is not the default one.
func (i instance) callBy(client *http.Client, token, method, path, body string) (answer, error) {
	return request(context.Background(), client, method, i.URL+path, body, "X-Public-Key", "pk_demo", "X-Cart-Token", token)
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
	assert.Require(t, err == nil && a.Status == http.StatusOK, "%s %s %s: %v, %d %s", method, path, body, err, a.Status, a.Body)
	return a
}
