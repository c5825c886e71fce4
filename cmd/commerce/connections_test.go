package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// serveBriefly serves like the public address, with short timeouts.
func serveBriefly(t *testing.T, h http.Handler, edits ...func(*http.Server)) string {
	t.Helper()
	s := httpServer(h, slog.New(slog.DiscardHandler))
	short := ephemeral.Patience(300 * time.Millisecond)
	s.ReadHeaderTimeout, s.IdleTimeout = short, short
	s.ReadTimeout, s.WriteTimeout = 2*short, 2*short
	s.ConnContext = server.ConnContext
	for _, edit := range edits {
		edit(s)
	}
	listener := assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(server.HoldWrites(listener)) }()
	t.Cleanup(func() {
		_ = s.Close()
		assert.ErrorIs(t, <-served, http.ErrServerClosed, "served")
	})
	return listener.Addr().String()
}

func dialSlowly(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn := assert.Must(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(ephemeral.Patience(20 * time.Second)))
	return conn
}

// readsAndFloods reads each request, and answers /flood with more than a connection buffers.
func readsAndFloods(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	if r.URL.Path == "/flood" {
		for part := make([]byte, 64<<10); ; {
			if _, err := w.Write(part); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
	}
}

// A slow client loses its connection, and others are served meanwhile.
func TestSlowClients_LoseTheirConnection(t *testing.T) {
	slow(t)
	for name, sends := range map[string]string{
		"nothing":              "",
		"half of the headers":  "GET / HTTP/1.1\r\nHost: x\r\nX-",
		"half of the body":     "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
		"no further request":   "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"and does not read":    "GET /flood HTTP/1.1\r\nHost: x\r\n\r\n",
		"half of the preface":  "PRI * HT",
		"only the h2c preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := make(chan struct{}, 100)
			addr := serveBriefly(t, http.HandlerFunc(readsAndFloods), func(s *http.Server) {
				s.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateClosed {
						closed <- struct{}{}
					}
				}
			})
			assert.Must(io.WriteString(dialSlowly(t, addr), sends))(t)
			other := dialSlowly(t, addr)
			fmt.Fprint(other, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			got, err := io.ReadAll(other)
			assert.That(t, err == nil && strings.HasPrefix(string(got), "HTTP/1.1 200"), "another client: %q, %v", got, err)
			for range 2 {
				select {
				case <-closed:
				case <-time.After(ephemeral.Patience(20 * time.Second)):
					t.Fatal("the connection stays open")
				}
			}
		})
	}
}

// A trickle of bytes does not keep a connection open.
func TestSlowClients_CannotTrickleARequest(t *testing.T) {
	t.Parallel()
	for name, begins := range map[string]string{
		"headers": "GET / HTTP/1.1\r\nHost: x\r\n",
		"body":    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dialSlowly(t, serveBriefly(t, http.HandlerFunc(readsAndFloods)))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = bufio.NewReader(conn).WriteTo(io.Discard)
			}()
			_, err := io.WriteString(conn, begins)
			for began := time.Now(); err == nil; {
				select {
				case <-ended:
					return
				case <-time.After(20 * time.Millisecond):
					_, err = io.WriteString(conn, "X-A: a\r\n")
				}
				assert.Require(t, time.Since(began) <= ephemeral.Patience(20*time.Second), "the connection stays open")
			}
		})
	}
}

// newH2C returns a client that speaks HTTP/2 without TLS, on one connection.
func newH2C(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Responses of any size on one connection are complete, also what HTTP/1.1 would hold back.
func TestH2C_ServesManyRequestsOnOneConnection(t *testing.T) {
	t.Parallel()
	demo := start(t, "demo")
	client := newH2C(t)
	token := strings.Repeat("token", 5)
	for line := range 20 {
		body := fmt.Sprintf(`{"product_id":5,"fields":{"Account email":"%d@example.com"}}`, line)
		a, err := demo.callBy(client, token, "POST", "/cart/add", body)
		assert.Require(t, err == nil && a.Status == http.StatusOK, "add: %v, %d %s", err, a.Status, a.Body)
	}
	var running sync.WaitGroup
	for i := range 50 { // few enough that none is refused on a busy machine
		running.Go(func() {
			path, want := "/cart", 20
			if i%2 == 0 {
				path, want = "/cart/count", 0
			}
			a, err := demo.callBy(client, token, "GET", path, "")
			assert.That(t, err == nil && a.Status == http.StatusOK && len(a.Data.Items) == want, "%v %d %s", err, a.Status, a.Body)
		})
	}
	running.Wait()
	assert.Equal(t, len(demo.mustCall(t, token, "GET", "/cart", "").Data.Items), 20, "HTTP/1.1: items")
}

// On SIGTERM every request is answered, or refused before it was begun.
func TestH2C_FinishesRequestsOnSIGTERM(t *testing.T) {
	t.Parallel()
	serve := startServe(t, seeded(t), "RATE_LIMIT=off")
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
