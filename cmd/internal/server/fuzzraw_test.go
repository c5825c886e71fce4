package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"commerce/deploy/assert"
)

// FuzzRawRequest writes bytes to a connection of a server like that of `commerce serve`. The
// server may send only HTTP responses that match the OpenAPI document, or that net/http itself
// makes.
func FuzzRawRequest(f *testing.F) {
	seedRawRequests(f)
	s := openFuzzed(f)
	w := openWeb(f, s.handler, func(serving *http.Server) {
		serving.MaxHeaderBytes, serving.DisableGeneralOptionsHandler = 64<<10, true
		serving.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(s.Log, nil), slog.LevelError)
	})
	known := strings.NewReplacer("{customer}", s.token(f, "1001"), "{store}", s.API, "{key}", s.Key, "{token}", strings.Repeat("token", 5))
	f.Fuzz(func(t *testing.T, sent []byte) {
		if len(sent) > 16<<10 {
			t.Skip("longer requests only take longer")
		}
		s.begin(t)
		w.talk(t, []byte(known.Replace(string(sent))))
	})
}

func seedRawRequests(f *testing.F) {
	var headers strings.Builder
	for _, name := range fuzzedHeaders() {
		fmt.Fprintf(&headers, "%s: x\r\n", name)
	}
	for _, call := range fuzzedCalls() {
		path := strings.NewReplacer("{item_id}", "1", "{id}", "5001").Replace(call.path)
		known := "Host: x\r\nX-Public-Key: {key}\r\nX-Cart-Token: {token}\r\n"
		if strings.HasPrefix(path, "/subscriptions") {
			known = "Host: x\r\nAuthorization: Bearer {store}\r\n"
		}
		f.Add([]byte(fmt.Sprintf("%s %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", call.method, path, known, len(call.body), call.body)))
		f.Add([]byte(fmt.Sprintf("%s %s HTTP/1.0\r\n%s\r\n%s", call.method, path, headers.String(), call.body)))
	}
	for _, request := range []string{
		"", "\r\n", "GET", "HEAD /cart HTTP/1.1\r\n\r\nGET", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET //cart/../cart HTTP/1.1\r\nHost: x\r\n\r\n", "GET /cart%2Fadd?%zz HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://y/cart/items/%00 HTTP/1.1\r\nHost: x\r\n\r\n",
		"HEAD /openapi.yaml HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /cart/add HTTP/1.1\r\nHost: x\r\nX-Public-Key: {key}\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{\"product_id\":1}\r\n0\r\n\r\n",
		"POST /cart/add HTTP/1.1\r\nHost: x\r\nX-Public-Key: {key}\r\nExpect: 200-ok\r\nContent-Length: 16\r\n\r\n{\"product_id\":1}",
		"POST /cart/add HTTP/1.1\r\nHost: x\r\nX-Public-Key: {key}\r\nContent-Length: 99\r\n\r\n{\"product_id\":1}",
		"POST /cart/add HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\nzz\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", "BREW /cart HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
		"GET /subscriptions/changes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {store}\r\nAccept: text/csv\r\nAccept-Encoding: gzip\r\n\r\n",
		"GET /subscriptions?per_page=1 HTTP/1.1\r\nHost: \"<>\\\r\nAuthorization: Bearer {store}\r\n\r\n",
		"GET / HTTP/1.1\r\n:" + strings.Repeat("a", 8<<10),
	} {
		f.Add([]byte(request))
	}
}

// talk sends bytes and checks the responses: first those to complete requests, and then the
// response to the incomplete rest, if any. Without a rest, the server waits for more.
func (w *web) talk(t *testing.T, sent []byte) {
	t.Helper()
	c := w.dial(t)
	defer c.Close()
	assert.NoError(t, write(c, sent))
	received := bufio.NewReader(c)
	requests := bufio.NewReader(bytes.NewReader(sent))
	for {
		r, err := http.ReadRequest(requests)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err != nil {
			break
		}
		if !wantResponse(t, received, r) {
			return
		}
	}
	_ = c.(*net.TCPConn).CloseWrite() // fails if the server has closed the connection
	for wantResponse(t, received, nil) {
	}
}

// write writes bytes, which the server need not read to the end before it closes.
func write(c net.Conn, sent []byte) error {
	_, err := c.Write(sent)
	if closed, _ := errors.AsType[*net.OpError](err); closed != nil && !closed.Timeout() {
		return nil
	}
	return err
}

// wantResponse reads one response, to r if r is not nil. It returns false if no further response
// can follow: at the end of the connection, or after a refusal by net/http, which closes it.
func wantResponse(t *testing.T, received *bufio.Reader, r *http.Request) (more bool) {
	t.Helper()
	if _, err := received.Peek(1); err != nil {
		broken, _ := errors.AsType[net.Error](err)
		assert.Require(t, broken == nil || !broken.Timeout(), "no answer in time")
		return false
	}
	response, err := http.ReadResponse(received, r)
	if errors.Is(err, syscall.ECONNRESET) {
		return false
	}
	assert.Require(t, err == nil, "no HTTP response: %v", err)
	if response.StatusCode < http.StatusOK { // 100 Continue
		return wantResponse(t, received, r)
	}
	body, err := io.ReadAll(response.Body)
	if errors.Is(err, syscall.ECONNRESET) && response.Header.Get("X-Request-Id") == "" {
		return false // net/http has refused the request and not read the rest of it
	}
	assert.Require(t, err == nil, "a response of %d with an incomplete body: %v", response.StatusCode, err)
	if response.Header.Get("X-Request-Id") == "" {
		wantNetHTTP(t, response)
		return false
	}
	wantService(t, r, response, body)
	return true
}

// wantService fails if the service's response to r is not documented, or says that it failed.
// A response to an incomplete request, for which r is nil, may be a 503 or a 504: the client
// seems to have disconnected.
func wantService(t *testing.T, r *http.Request, response *http.Response, body []byte) {
	t.Helper()
	failed := response.StatusCode >= http.StatusInternalServerError
	assert.Require(t, !failed || r == nil && response.StatusCode != http.StatusInternalServerError, "%d %s", response.StatusCode, body)
	if r == nil {
		return
	}
	if expect := r.Header.Get("Expect"); response.StatusCode == http.StatusExpectationFailed && expect != "" { // of any call
		refusal := decode[struct{ Errors map[string][]string }](t, body)
		assert.Require(t, !strings.EqualFold(expect, "100-continue") && len(refusal.Errors["Expect"]) == 1, "Expect: %q: %s", expect, body)
		return
	}
	assert.NoError(t, uncompressed(response, &body))
	response.Body = io.NopCloser(bytes.NewReader(body))
	err := conforms(r, response, "")
	assert.Require(t, err == nil, "%s %q does not match the OpenAPI document: %v", r.Method, r.RequestURI, err)
}

func uncompressed(response *http.Response, body *[]byte) error {
	if response.Header.Get("Content-Encoding") != "gzip" || len(*body) == 0 {
		return nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(*body))
	if err != nil {
		return err
	}
	*body, err = io.ReadAll(reader)
	return err
}

// wantNetHTTP fails unless net/http itself makes such a refusal.
func wantNetHTTP(t *testing.T, response *http.Response) {
	t.Helper()
	switch status := response.StatusCode; {
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
	case status == http.StatusNotImplemented, status == http.StatusHTTPVersionNotSupported:
	default:
		t.Fatalf("%d without X-Request-Id", status)
	}
}
