package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/cart/live"
	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

type follower struct {
	t testing.TB
	*http.Response
	lines *bufio.Reader
}

// follow opens a stream of events, and fails the test unless it gets one.
func follow(t testing.TB, url string, headers ...string) *follower {
	t.Helper()
	f := knock(t, url, headers...)
	if f.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(f.lines)
		t.Fatalf("%s: %s", f.Status, body)
	}
	h := f.Header
	assert.That(t, h.Get("Content-Type") == "text/event-stream" && h.Get("Cache-Control") == "no-store" && h.Get("Content-Encoding") == "" &&
		h.Get("X-Accel-Buffering") == "no" && h.Get("No-Gzip-Compression") == "" && h.Get("Date") != "", "headers %v", h)
	return f
}

// knock is follow with any response.
func knock(t testing.TB, url string, headers ...string) *follower {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(20*time.Second))
	r := assert.Must(http.NewRequestWithContext(ctx, "GET", url, nil))(t)
	r.Header.Set("Accept-Encoding", "gzip, zstd")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Transport{}
	response := assert.Must(client.RoundTrip(r))(t)
	t.Cleanup(func() { cancel(); response.Body.Close(); client.CloseIdleConnections() })
	return &follower{t, response, bufio.NewReader(response.Body)}
}

// next returns the next part of a stream, up to an empty line; "" at its end.
func (f *follower) next() string {
	f.t.Helper()
	var part strings.Builder
	for {
		line, err := f.lines.ReadString('\n')
		if err == io.EOF && part.Len() == 0 {
			return ""
		}
		assert.NoError(f.t, err)
		if line == "\n" {
			return part.String()
		}
		part.WriteString(line)
	}
}

func (f *follower) begins() {
	f.t.Helper()
	text, ok := strings.CutPrefix(f.next(), "retry: ")
	ms, err := strconv.Atoi(strings.TrimSpace(text))
	assert.That(f.t, ok && err == nil && 0 <= ms && ms <= 10_000, "retry %q", text)
}

func (f *follower) shows(tag string) {
	f.t.Helper()
	version := strings.Split(tag, ".")[1]
	assert.Equal(f.t, f.next(), "event: cart\nid: "+tag+"\ndata: {\"version\":"+version+"}\n", "event")
}

// tag is the part of an ETag that events have.
func (a answer) tag() string {
	tag, _, _ := strings.Cut(strings.Trim(a.Header.Get("ETag"), `"`), "-")
	return tag
}

// onEachProtocol runs a test with connections that streams take over, and with those that they share.
func onEachProtocol(t *testing.T, s *shop, test func(t *testing.T, url string)) {
	t.Helper()
	for name, url := range map[string]string{"own connection": "http://" + openWeb(t, s.handler).addr, "shared connection": s.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, url+"/cart/events")
		})
	}
}

func TestEvents_ShowEachChange(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		onEachProtocol(t, s, func(t *testing.T, url string) {
			guest := s.guest(t)
			tag := guest.add(addOne).tag()
			key, token := []string{"X-Public-Key", s.Key}, []string{"X-Cart-Token", guest.Token}
			f := follow(t, url, append(key, token...)...)
			f.begins()
			f.shows(tag)
			for range 3 {
				tag = guest.add(addOne).tag()
				f.shows(tag)
			}
			again := follow(t, url, append(append(key, token...), "Last-Event-ID", tag)...)
			again.begins()
			tag = guest.ok("DELETE", "/cart/clear", "").tag()
			f.shows(tag)
			again.shows(tag)

			guest.add(addOne)
			f.next()
			again.next()
			customer := s.customer(t, "c"+guest.Token[:5])
			tag = customer.add(addOne).tag()
			theirs := follow(t, url, "X-Public-Key", s.Key, "Authorization", "Bearer "+customer.JWT, "X-Cart-Token", guest.Token)
			theirs.begins()
			theirs.shows(tag) // opening a stream has merged nothing
			assert.That(t, guest.ok("GET", "/cart", "").Body.Data.Count > 0, "the stream has merged the guest's cart")
			tag = customer.ok("GET", "/cart", "", "X-Cart-Token", guest.Token).tag()
			theirs.shows(tag)
			for _, of := range []*follower{f, again} {
				of.shows("0.0.0")
				assert.Equal(t, of.next(), "", "after the cart is gone")
			}
			_, _, undone := customer.undo()
			theirs.shows(undone.tag())
		})
	})
}

func TestEvents_AreRefused(t *testing.T) {
	for name, limits := range map[string]live.Config{"of a client": {ClientStreams: 5}, "of the instance": {Streams: 5}} {
		t.Run(name, func(t *testing.T) { refuseEvents(t, limits) })
	}
}

func refuseEvents(t *testing.T, limits live.Config) {
	s := newShop(t, func(p *server.Parts) { p.Live = limits })
	guest, other := s.guest(t), s.guest(t)
	guest.refused(401, "unauthenticated", "GET", "/cart/events", "").names(t, "X-Cart-Token")
	guest.refused(401, "unauthenticated", "GET", "/cart/events", "", "X-Cart-Token", "short")
	guest.refused(404, "not_found", "GET", "/cart/events", "", "X-Cart-Token", strings.Repeat("token", 5))
	s.customer(t, "new").refused(404, "not_found", "GET", "/cart/events", "")
	guest.add(addOne)
	other.add(addOne)
	guest.ok("HEAD", "/cart/events", "")
	url := "http://" + openWeb(t, s.handler).addr + "/cart/events"
	knock := func(c *shopper) *follower { return knock(t, url, "X-Public-Key", s.Key, "X-Cart-Token", c.Token) }
	var open []*follower
	for range 4 {
		open = append(open, knock(guest))
	}
	fifth := knock(guest)
	assert.That(t, fifth.StatusCode == 503 && fifth.Header.Get("Retry-After") == "10", "a fifth stream of the cart: %s, %v", fifth.Status, fifth.Header)
	open = append(open, knock(other))
	assert.Equal(t, knock(other).StatusCode, 503, "a sixth stream")
	assert.Equal(t, metric(t, s.Metrics, "commerce_cart_streams"), float64(len(open)), "open streams")
	assert.Equal(t, metric(t, s.Metrics, `commerce_limiter_refusals_total{limit="streams"}`), 2, "refusals")
	assert.Equal(t, metric(t, s.Metrics, `commerce_http_request_duration_seconds_count{method="GET",route="refused",status="503"}`), 2, "refused requests")
	assert.That(t, !strings.Contains(s.Log.String(), `"level":"ERROR"`), "a refusal is an error in the log: %s", s.Log)
	for _, f := range open {
		f.Body.Close()
	}
	ephemeral.Eventually(t, "a place after the streams were closed", func() bool { return knock(guest).StatusCode == http.StatusOK })
}

func TestEvents_EndWhenTheTokenExpires(t *testing.T) {
	s := newShop(t, func(p *server.Parts) { p.Heartbeat = 20 * time.Millisecond })
	c := s.customer(t, "c")
	tag := c.add(addOne).tag()
	onEachProtocol(t, s, func(t *testing.T, url string) {
		jwt := assert.Must(s.JWT.Sign(s.ID, "c", time.Second))(t)
		f := follow(t, url, "X-Public-Key", s.Key, "Authorization", "Bearer "+jwt)
		f.begins()
		f.shows(tag)
		for text := f.next(); text != ""; text = f.next() {
			assert.Require(t, text == ": \n", "got %q", text)
		}
		late := follow(t, url, "X-Public-Key", s.Key, "Authorization", "Bearer "+jwt) // within the leeway
		late.begins()
		late.shows(tag)
		assert.Equal(t, late.next(), "", "after the first event")
	})
}

type source struct {
	events chan string
	wake   atomic.Pointer[func()]
	closed chan struct{}
}

func (s *source) send(event string) {
	s.events <- event
	s.wakeUp()
}

func (s *source) wakeUp() {
	for s.wake.Load() == nil { // the stream has begun, but does not wait yet
		time.Sleep(time.Millisecond)
	}
	(*s.wake.Load())()
}

// sending serves a stream at /stream, by both kinds of connections.
func sending(t *testing.T, edit func(*server.Config)) (s *source, log *logBuffer, web *web, shared *httptest.Server) {
	t.Helper()
	s = &source{events: make(chan string, 1<<20), closed: make(chan struct{}, 10)}
	h, log := handlerOf(t, func(c *server.Config) {
		c.Areas = only("/stream", func(*gin.Context) (wire.Answer, error) {
			return wire.Answer{Events: &wire.Events{
				Next: func() ([]byte, error) {
					select {
					case event := <-s.events:
						return []byte(event), nil
					default:
						return nil, nil
					}
				},
				Wake:  func(f func()) { s.wake.Store(&f); f() },
				Close: func() { s.closed <- struct{}{} },
			}}, nil
		})
		edit(c)
	})
	shared = httptest.NewServer(h)
	t.Cleanup(shared.Close)
	return s, log, openWeb(t, h, func(s *http.Server) { s.Protocols = protocols(true, true) }), shared
}

func TestEventStream_KeepsAnIdleConnectionAndEndsWithTheClient(t *testing.T) {
	t.Parallel()
	s, log, web, shared := sending(t, func(c *server.Config) { c.Heartbeat, c.Deadline = time.Millisecond, time.Millisecond })
	for _, url := range []string{"http://" + web.addr, shared.URL} {
		f := follow(t, url+"/stream")
		assert.Equal(t, f.next(), ": \n", "a comment")
		s.send("data: 1\n\n")
		for text := f.next(); text != "data: 1\n"; text = f.next() {
			assert.Require(t, text == ": \n", "got %q", text)
		}
		f.Body.Close()
		happens(t, s.closed, "the stream ends")
	}
	for _, line := range []string{`"msg":"request","method":"GET","route":"/stream","status":200`, `"end":"the client left"`} {
		ephemeral.Eventually(t, "two lines with "+line, func() bool { return strings.Count(log.String(), line) == 2 })
	}
}

func TestEventStream_HasNoDeadlineOverHTTP2(t *testing.T) {
	t.Parallel()
	_, log, web, _ := sending(t, func(c *server.Config) {
		c.Deadline, c.Stall, c.Heartbeat = time.Second, time.Second, 1500*time.Millisecond
	})
	client := &http.Transport{Protocols: protocols(false, true)}
	t.Cleanup(client.CloseIdleConnections)
	response := assert.Must(client.RoundTrip(assert.Must(http.NewRequestWithContext(t.Context(), "GET", "http://"+web.addr+"/stream", nil))(t)))(t)
	defer response.Body.Close()
	f := &follower{t, response, bufio.NewReader(response.Body)}
	for range 2 {
		assert.Equal(t, f.next(), ": \n", "a comment of %s", log)
	}
}

func TestEventStream_EndsWithTheProcess(t *testing.T) {
	t.Parallel()
	ending, end := context.WithCancelCause(t.Context())
	s, log, web, shared := sending(t, func(c *server.Config) { c.Ending = ending })
	streams := []*follower{follow(t, "http://"+web.addr+"/stream"), follow(t, shared.URL+"/stream")}
	for _, f := range streams {
		assert.Equal(t, f.next(), ": \n", "the beginning")
	}
	end(errors.New("the process stops"))
	for _, f := range streams {
		assert.Equal(t, f.next(), "", "what follows")
		happens(t, s.closed, "the stream ends")
	}
	ephemeral.Eventually(t, "lines about the ends", func() bool { return strings.Count(log.String(), `"end":"the process stops"`) == 2 })
}

// counting is a context that counts those which depend on it.
type counting struct {
	context.Context
	children atomic.Int64
}

func (c *counting) Value(any) any { return nil } // or else AfterFunc is not called

func (c *counting) AfterFunc(f func()) (stop func() bool) {
	c.children.Add(1)
	end := context.AfterFunc(c.Context, f)
	return func() bool {
		c.children.Add(-1)
		return end()
	}
}

func TestEventStream_LeavesNothingIfTheClientLeftBefore(t *testing.T) {
	t.Parallel()
	ending := &counting{Context: t.Context()}
	s, _, web, _ := sending(t, func(c *server.Config) { c.Ending, c.Stall = ending, -time.Second })
	assert.Must(io.WriteString(web.dial(t), "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
	happens(t, s.closed, "the stream ends")
	assert.Equal(t, ending.children.Load(), 0, "contexts that wait for the end of the process")
}

func TestEventStream_EndsIfTheClientDoesNotRead(t *testing.T) {
	t.Parallel()
	s, log, web, _ := sending(t, func(c *server.Config) { c.Stall = 100 * time.Millisecond })
	c := web.dial(t)
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	assert.Must(io.WriteString(c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
	assert.Must(c.Read(make([]byte, 1)))(t)
	for range 10_000 {
		s.events <- "data: " + strings.Repeat("x", 100) + "\n\n"
	}
	s.wakeUp()
	happens(t, s.closed, "the stream ends")
	left := len(s.events) * 108
	assert.That(t, left > 800_000, "the connection took all but %d bytes", left)
	ephemeral.Eventually(t, "a line about the end", func() bool { return strings.Contains(log.String(), "i/o timeout") })
}

// A client that keeps sending must not keep the service busy.
func TestEventStream_EndsIfTheClientSendsMuch(t *testing.T) {
	t.Parallel()
	s, _, web, _ := sending(t, func(*server.Config) {})
	c := web.dial(t)
	assert.Must(io.WriteString(c, "GET /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"))(t)
	assert.Must(c.Read(make([]byte, 1)))(t)
	_, _ = io.WriteString(c, strings.Repeat("x", 80<<10))
	happens(t, s.closed, "the stream ends")
}

// Streams have no place among the requests in flight.
func TestEventStream_IsOutsideOfTheLimitInFlight(t *testing.T) {
	t.Parallel()
	_, _, web, shared := sending(t, func(c *server.Config) { c.MaxInFlight, c.Heartbeat = 1, time.Millisecond })
	for _, url := range []string{"http://" + web.addr, shared.URL, "http://" + web.addr, shared.URL} {
		assert.Equal(t, follow(t, url+"/stream").next(), ": \n", "a comment")
	}
}

func TestEventStream_HEADHasItsHeaders(t *testing.T) {
	t.Parallel()
	s, _, web, _ := sending(t, func(*server.Config) {})
	got := web.say(t, "HEAD /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	assert.That(t, strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") && strings.Contains(got, "Content-Type: text/event-stream\r\n") && strings.HasSuffix(got, "\r\n\r\n"), "%s", got)
	happens(t, s.closed, "the source is closed")
}
