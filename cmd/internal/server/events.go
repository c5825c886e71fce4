package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"

	"commerce/cart/wire"
)

// eventStream is a response of server-sent events. Its request has ended for the log and the metrics when
// it begins; it has a line of its own at its end.
//
// Thousands may be open, so an idle one must take little memory. Over HTTP/1.1 it takes the connection
// from net/http, whose buffers and stacks of a request would take 25 KB.
type eventStream struct {
	*responder
	*wire.Events
	began     time.Time
	requestID string
	store     int64
	caller    wire.Caller
}

// events begins a response of server-sent events.
func (r *responder) events(c *gin.Context, answer wire.Answer) {
	request := requestContextOf(c.Request.Context())
	r.beginStream(c, "text/event-stream")
	c.Header(gzhttp.HeaderNoCompression, "1") // a compressor per stream takes too much memory
	s := &eventStream{r, answer.Events, r.Now(), requestIDOf(c), answer.Store, answer.Caller}
	if request.Method == http.MethodHead {
		s.Close()
		return
	}
	conn := connectionOf(c.Request)
	if conn == nil { // a connection of HTTP/2 has other responses, too
		request.ended(false)
		ctx, cancel := context.WithCancel(c.Request.Context())
		defer context.AfterFunc(r.Ending, cancel)()
		s.run(ctx, func(part []byte) error { return r.send(c.Writer, part) })
		return
	}
	head, err := takeOver(c)
	if err != nil {
		s.Close()
		r.fail(c, answer, fmt.Errorf("%w: take over the connection: %w", http.ErrAbortHandler, err))
	}
	go s.runOn(conn.Conn, head)
}

// takeOver takes a connection from net/http. It returns the status line and headers, which it has not sent.
// The body ends with the connection.
func takeOver(c *gin.Context) ([]byte, error) {
	if _, _, err := c.Writer.Hijack(); err != nil {
		return nil, err
	}
	h := c.Writer.Header()
	h.Set("Connection", "close")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Del(gzhttp.HeaderNoCompression)
	head := bytes.NewBufferString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(head)
	head.WriteString("\r\n")
	return head.Bytes(), nil
}

// runOn sends the stream on a connection of its own, until one side ends it.
func (s *eventStream) runOn(conn net.Conn, head []byte) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(s.Ending)
	go func() {
		defer cancel()
		var b [16]byte
		for range 4 << 10 { // more is no body of a GET
			if _, err := conn.Read(b[:]); err != nil {
				return
			}
		}
	}()
	s.run(ctx, func(part []byte) error {
		if err := conn.SetWriteDeadline(time.Now().Add(s.Stall)); err != nil {
			return err
		}
		_, err := conn.Write(append(head, part...))
		head = nil
		return err
	})
}

// run sends the events until ctx ends, or until there are no more.
func (s *eventStream) run(ctx context.Context, send func([]byte) error) {
	defer s.Close()
	if !s.Until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(s.Until.Sub(s.Now()), time.Second))
		defer cancel()
	}
	for sent := 0; ; sent++ {
		part, err := s.next(ctx)
		if err == nil {
			err = send(part)
		}
		if err != nil {
			s.logEnd(ctx, sent, err)
			return
		}
	}
}

// next returns the next event, or a comment if there is none for a while: so that client, proxies and this side
// find out if the connection is broken.
func (s *eventStream) next(ctx context.Context) ([]byte, error) {
	quiet, cancel := context.WithTimeout(ctx, s.Heartbeat)
	defer cancel()
	part, err := s.Next(quiet)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return []byte(": \n\n"), nil
	}
	return part, err
}

func (s *eventStream) logEnd(ctx context.Context, sent int, err error) {
	why := "the client left"
	switch {
	case errors.Is(err, io.EOF):
		why = "the cart is gone"
	case s.Ending.Err() != nil:
		why = "the process stops"
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		why = "the token has expired"
	case errors.Is(err, os.ErrDeadlineExceeded):
		why = "the client does not read"
	case ctx.Err() == nil:
		why = err.Error()
	}
	s.Log.LogAttrs(ctx, slog.LevelInfo, "stream", slog.Float64("ms", milliseconds(s.Now().Sub(s.began))), slog.Int("parts", sent),
		slog.String("end", why), slog.String("request_id", s.requestID), slog.Int64("store", s.store), slog.String("caller", string(s.caller)))
}
