package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// web is a server on a listener that counts the writes of its connections.
type web struct {
	addr   string
	writes atomic.Int64
	closed chan struct{} // one message for each connection that the server has closed
	server *http.Server
}

type countedListener struct {
	net.Listener
	writes *atomic.Int64
}

func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	return countedConn{c, l.writes}, nil
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func (c countedConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func openWeb(t testing.TB, h http.Handler, edits ...func(*http.Server)) *web {
	t.Helper()
	w := &web{closed: make(chan struct{}, 1)}
	w.server = &http.Server{
		Handler: h, ConnContext: server.ConnContext, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				select {
				case w.closed <- struct{}{}:
				default: // nobody waits for so many
				}
			}
		},
	}
	for _, edit := range edits {
		edit(w.server)
	}
	listener := assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	w.addr = listener.Addr().String()
	go func() { _ = w.server.Serve(server.HoldWrites(countedListener{listener, &w.writes})) }()
	t.Cleanup(func() { _ = w.server.Close() })
	return w
}

// dial returns a connection with a short time limit for all that a test does with it.
func (w *web) dial(t testing.TB) net.Conn {
	t.Helper()
	c := assert.Must(net.Dial("tcp", w.addr))(t)
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// say sends text, and returns all until the server closes the connection.
func (w *web) say(t *testing.T, text string) string {
	t.Helper()
	c := w.dial(t)
	assert.Must(io.WriteString(c, text))(t)
	return string(assert.Must(io.ReadAll(c))(t))
}

// answering returns routes with data of a size, and with other kinds of responses.
func answering(t *testing.T, routes ...wire.Route) http.Handler {
	t.Helper()
	for _, size := range []int{10, 3000, 3970, 6000, 12_000, 60_000} {
		routes = append(routes, wire.Route{
			Method: "GET", Path: fmt.Sprintf("/%d", size),
			Handle: func(c *gin.Context) (wire.Answer, error) {
				known, err := wire.ParseTags(c.Request.Header, "If-None-Match")
				return wire.Answer{Version: "1", Known: known, Data: func(w *wire.Writer) {
					w.BeginObject()
					w.Text("text", strings.Repeat("0123456789", size/10))
					w.EndObject()
				}}, err
			},
		})
	}
	handler, _ := handlerOf(t, func(c *server.Config) {
		c.Areas = []wire.Area{{Routes: routes}}
		c.Now = func() time.Time { return time.Unix(1_800_000_000, 0) }
	})
	return handler
}

func TestHeldWrites_SendACartInOneWrite(t *testing.T) {
	s := realShop(t)
	guest := s.guest(t)
	for _, notice := range []string{"a", "b", "c", "d", "e"} {
		guest.add(`{"product_id":5,"fields":{"Account email":"` + notice + `@example.com"}}`)
	}
	w := openWeb(t, s.handler)
	c := w.dial(t)
	r := bufio.NewReader(c)
	for i := range int64(3) {
		fmt.Fprintf(c, "GET /cart HTTP/1.1\r\nHost: x\r\nX-Public-Key: %s\r\nX-Cart-Token: %s\r\n\r\n", s.Key, guest.Token)
		response := assert.Must(http.ReadResponse(r, nil))(t)
		n, err := io.Copy(io.Discard, response.Body)
		assert.Require(t, err == nil && n >= 5000 && response.StatusCode == http.StatusOK, "got %s with %d bytes, %v", response.Status, n, err)
		assert.Equal(t, w.writes.Load(), i+1, "writes after %d requests", i+1)
	}
}

func TestHeldWrites_DependOnTheSize(t *testing.T) {
	t.Parallel()
	handler := answering(t)
	for path, want := range map[string]int64{"/10": 1, "/3000": 1, "/3970": 1, "/6000": 1, "/12000": 1, "/60000": 2} {
		w := openWeb(t, handler)
		got := w.say(t, "GET "+path+" HTTP/1.0\r\n\r\n")
		assert.That(t, strings.HasPrefix(got, "HTTP/1.0 200") && strings.HasSuffix(got, "}"), "%s: got %.100s…", path, got)
		assert.Equal(t, w.writes.Load(), want, "%s: writes", path)
	}
}

// Every response has the same bytes as without HoldWrites.
func TestHeldWrites_DoNotChangeAResponse(t *testing.T) {
	t.Parallel()
	handler := answering(t)
	held, plain := openWeb(t, handler), openWeb(t, handler, func(s *http.Server) { s.ConnContext = nil })
	tag := regexp.MustCompile(`Etag: (\S+)`).FindStringSubmatch(held.say(t, "GET /6000 HTTP/1.0\r\n\r\n"))[1]
	for _, size := range []string{"10", "3000", "3970", "6000", "12000", "60000"} {
		for name, lines := range map[string]string{
			"GET":           "GET /%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			"HEAD":          "HEAD /%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			"HTTP/1.0":      "GET /%s HTTP/1.0\r\n\r\n",
			"gzip":          "GET /%s HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
			"gzip and HEAD": "HEAD /%s HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
			"tag":           "GET /%s HTTP/1.1\r\nHost: x\r\nIf-None-Match: " + tag + "\r\nConnection: close\r\n\r\n",
			"bad tag":       "GET /%s HTTP/1.1\r\nHost: x\r\nIf-None-Match: x\r\nConnection: close\r\n\r\n",
			"pipelined": "GET /%[1]s HTTP/1.1\r\nHost: x\r\n\r\nHEAD /%[1]s HTTP/1.1\r\nHost: x\r\n\r\nGET /10 HTTP/1.1\r\nHost: x\r\n\r\n" +
				"GET /60000 HTTP/1.1\r\nHost: x\r\n\r\nGET /%[1]s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			"unread body": "GET /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\nConnection: close\r\n\r\n",
			"expectation": "GET /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nabc",
			"not HTTP":    "GET /%s\r\n\r\n",
		} {
			lines = fmt.Sprintf(strings.Replace(lines, "Host: x", "Host: x\r\nX-Request-Id: same", -1), size)
			got, want := held.say(t, lines), plain.say(t, lines)
			changing := regexp.MustCompile(`(Date|X-Request-Id): [^\r]*`)
			got, want = changing.ReplaceAllString(got, "$1"), changing.ReplaceAllString(want, "$1")
			assert.Require(t, want != "", "%s of %s: no response", name, size)
			assert.Equal(t, got, want, "%s of %s, compared with no held writes", name, size)
		}
	}
}

func TestHeldWrites_LetStreamingHandlersFlush(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	w := openWeb(t, answering(t, wire.Route{Method: "GET", Path: "/stream", Handle: func(c *gin.Context) (wire.Answer, error) {
		c.Writer.Header().Set("Content-Length", "8192")
		for range 8 { // together more than net/http buffers
			_, _ = c.Writer.Write(bytes.Repeat([]byte("x"), 1024))
			c.Writer.Flush()
			<-next
		}
		return wire.Answer{}, nil
	}}))
	c := w.dial(t)
	r := bufio.NewReader(c)
	// The connection has held a response before.
	fmt.Fprint(c, "GET /6000 HTTP/1.1\r\nHost: x\r\n\r\nGET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
	first := assert.Must(http.ReadResponse(r, nil))(t)
	_, _ = io.Copy(io.Discard, first.Body)
	response := assert.Must(http.ReadResponse(r, nil))(t)
	for range 8 {
		assert.Must(io.ReadFull(response.Body, make([]byte, 1024)))(t)
		next <- struct{}{}
	}
}

func TestHeldWrites_SurvivePanics(t *testing.T) {
	t.Parallel()
	fail := wire.Route{Method: "GET", Path: "/fail", Handle: func(*gin.Context) (wire.Answer, error) {
		return wire.Answer{Data: func(w *wire.Writer) {
			w.BeginObject()
			w.Text("text", strings.Repeat("x", 6000))
			panic("while writing")
		}}, nil
	}}
	abort := wire.Route{Method: "GET", Path: "/abort", Handle: func(*gin.Context) (wire.Answer, error) { panic(http.ErrAbortHandler) }}
	w := openWeb(t, answering(t, fail, abort))
	got := w.say(t, "GET /fail HTTP/1.1\r\nHost: x\r\n\r\nGET /6000 HTTP/1.1\r\nHost: x\r\n\r\nGET /abort HTTP/1.1\r\nHost: x\r\n\r\n")
	statuses := regexp.MustCompile(`HTTP/1.1 (\d+)`).FindAllString(got, -1)
	assert.Equal(t, statuses, []string{"HTTP/1.1 500", "HTTP/1.1 200"}, "status lines")
	assert.That(t, strings.HasSuffix(got, "}"), "the 200 is not complete: …%s", got[max(0, len(got)-100):])
}

// Requests that a client sends without reading the responses fill the buffers of the
// kernel. Then the write of a held response does not end.
func TestHeldWrites_EndAtTheWriteTimeout(t *testing.T) {
	t.Parallel()
	w := openWeb(t, answering(t), func(s *http.Server) { s.WriteTimeout = 200 * time.Millisecond })
	c := w.dial(t)
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	stop := context.AfterFunc(t.Context(), func() { c.Close() })
	defer stop()
	go func() {
		for { // until the server closes the connection
			if _, err := io.WriteString(c, "GET /6000 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				return
			}
		}
	}()
	happens(t, w.closed, "the server gives up")
}

func TestHeldWrites_FinishDuringAShutdown(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	w := openWeb(t, answering(t, wire.Route{Method: "GET", Path: "/slow", Handle: func(*gin.Context) (wire.Answer, error) {
		return wire.Answer{Data: func(w *wire.Writer) {
			close(entered)
			<-leave
			w.BeginObject()
			w.Text("text", strings.Repeat("x", 6000))
			w.EndObject()
		}}, nil
	}}))
	answer := make(chan string, 1)
	go func() {
		defer close(answer) // if say ends the goroutine
		answer <- w.say(t, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
	}()
	<-entered
	down := make(chan error, 1)
	go func() { down <- w.server.Shutdown(context.Background()) }()
	ephemeral.Eventually(t, "the server refuses connections", func() bool {
		c, err := net.Dial("tcp", w.addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(leave)
	got := <-answer
	assert.That(t, strings.HasSuffix(got, "}") && strings.Contains(got, strings.Repeat("x", 6000)), "got %.200s…", got)
	err := <-down
	assert.That(t, err == nil || errors.Is(err, http.ErrServerClosed), "%v", err)
}
