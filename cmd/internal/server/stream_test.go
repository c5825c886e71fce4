package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// yield sends a part of a stream, and returns whether to go on.
type yield = func([]byte, error) bool

func streaming(t *testing.T, edit func(*server.Config), yields func(context.Context, yield)) *web {
	t.Helper()
	parts := func(ctx context.Context, _ *wire.Writer) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) { yields(ctx, yield) }
	}
	h, _ := handlerOf(t, func(c *server.Config) {
		c.Areas = only("/stream", func(*gin.Context) (wire.Answer, error) {
			return wire.Answer{Stream: &wire.Stream{ContentType: "application/x-ndjson", Parts: parts}}, nil
		})
		if edit != nil {
			edit(c)
		}
	})
	return openWeb(t, h, func(s *http.Server) { s.WriteTimeout = time.Second })
}

// part is larger than what a stream writes at once.
var part = []byte(strings.Repeat(strings.Repeat("x", 1023)+"\n", 100))

func endless(ended chan<- struct{}) func(context.Context, yield) {
	return func(ctx context.Context, yield yield) {
		defer close(ended)
		for ctx.Err() == nil && yield(part, nil) {
			continue
		}
	}
}

func (w *web) stream(t *testing.T, encoding string) *http.Response {
	t.Helper()
	r := assert.Must(http.NewRequestWithContext(t.Context(), "GET", "http://"+w.addr+"/stream", nil))(t)
	r.Header.Set("Accept-Encoding", encoding)
	response := assert.Must(http.DefaultTransport.RoundTrip(r))(t)
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// happens fails the test if nothing comes from a channel, which is not closed either.
func happens(t *testing.T, event <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(ephemeral.Patience(20 * time.Second)):
		t.Errorf("not yet: %s", what)
	}
}

func TestStream_SendsEachPartWhenItIsMade(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	w := streaming(t, nil, func(_ context.Context, yield yield) {
		if yield([]byte("one\n"), nil) {
			<-more
			yield([]byte("two\n"), nil)
		}
	})
	response := w.stream(t, "identity")
	first := make([]byte, 4)
	assert.Must(io.ReadFull(response.Body, first))(t)
	assert.Equal(t, string(first), "one\n", "the first part")
	close(more)
	assert.Equal(t, string(assert.Must(io.ReadAll(response.Body))(t)), "two\n", "the rest")
	h := response.Header
	assert.That(t, h.Get("Content-Type") == "application/x-ndjson" && h.Get("Cache-Control") == "no-store" && h.Get("Content-Length") == "", "%v", h)
}

func TestStream_OutlivesTheDeadlineOfRequests(t *testing.T) {
	t.Parallel()
	w := streaming(t, func(c *server.Config) { c.Deadline = time.Millisecond }, func(ctx context.Context, yield yield) {
		time.Sleep(20 * time.Millisecond)
		_, limited := ctx.Deadline()
		yield([]byte(fmt.Sprint(limited, ctx.Err())), nil)
	})
	response := w.stream(t, "identity")
	assert.Equal(t, string(assert.Must(io.ReadAll(response.Body))(t)), "false <nil>", "whether the stream has a deadline")
}

func TestStream_AnErrorBeforeTheFirstPartIsAResponse(t *testing.T) {
	t.Parallel()
	w := streaming(t, nil, func(_ context.Context, yield yield) {
		yield(nil, problem.New(problem.CursorExpired, "after", locale.Text{locale.En: "Expired.", locale.Ar: "انتهى."}))
	})
	response := w.stream(t, "identity")
	body, err := io.ReadAll(response.Body)
	assert.That(t, response.StatusCode == http.StatusGone && strings.Contains(string(body), `"cursor_expired"`) && err == nil, "%s %s, %v", response.Status, body, err)
}

// The client must not take what it has for the whole.
func TestStream_ALaterErrorClosesTheConnection(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"identity", "gzip"} {
		w := streaming(t, nil, func(_ context.Context, yield yield) {
			if yield(part, nil) {
				yield(nil, errors.New("the database is gone"))
			}
		})
		response := w.stream(t, encoding)
		body, err := io.ReadAll(response.Body)
		assert.That(t, response.StatusCode == http.StatusOK && len(body) != 0 && errors.Is(err, io.ErrUnexpectedEOF), "%s: %s, %d bytes, %v", encoding, response.Status, len(body), err)
	}
}

func TestStream_EndsWhenTheClientTakesNothing(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	w := streaming(t, func(c *server.Config) { c.Stall = 100 * time.Millisecond }, endless(ended))
	c := w.dial(t)
	assert.Must(io.WriteString(c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
	happens(t, ended, "the stream ends")
}

// A client that is slow but makes progress is served longer than the time for a stall.
func TestStream_ServesASlowClient(t *testing.T) {
	slow(t)
	const parts, stall = 60, 2 * time.Second
	w := streaming(t, func(c *server.Config) { c.Stall = stall }, func(_ context.Context, yield yield) {
		for range parts {
			if !yield(part, nil) {
				return
			}
		}
	})
	c := w.dial(t)
	_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
	assert.Must(io.WriteString(c, "GET /stream HTTP/1.0\r\n\r\n"))(t)
	start, total, room := time.Now(), 0, make([]byte, 128<<10)
	for {
		n, err := c.Read(room)
		if total += n; err != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	took := time.Since(start)
	assert.That(t, total >= parts*len(part) && took >= stall, "%d bytes in %v", total, took)
}

func TestStream_EndsWhenTheClientDisconnects(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	w := streaming(t, nil, endless(ended))
	w.stream(t, "identity").Body.Close()
	happens(t, ended, "the stream ends")
}

func TestStream_HEADHasTheHeadersAndReadsOnePart(t *testing.T) {
	t.Parallel()
	made := 0
	w := streaming(t, nil, func(_ context.Context, yield yield) {
		for made = 1; yield(part, nil); made++ {
			continue
		}
	})
	got := w.say(t, "HEAD /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	assert.That(t, strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") && strings.Contains(got, "Content-Type: application/x-ndjson\r\n") && strings.HasSuffix(got, "\r\n\r\n") && made == 1, "%d parts:\n%s", made, got)
}
