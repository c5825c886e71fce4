package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"

	"commerce/cart/wire"
)

// eventStream is a response of server-sent events. For the metrics and the log its request ends when the
// stream begins. At its end, the stream has a line of its own.
//
// Most streams are idle most of the time, so each must take little memory. Over HTTP/1.1 it takes the
// connection from net/http, whose buffers and stacks take 20 KB. Then one goroutine waits, and another
// one sends, which exists only meanwhile.
type eventStream struct {
	*responder
	*wire.Events
	conn      eventConn
	ctx       context.Context // its cause says why the stream has ended
	end       context.CancelCauseFunc
	began     time.Time
	requestID string
	store     int64
	caller    wire.Caller

	wakes   atomic.Int32 // since the goroutine that sends began
	comment atomic.Bool  // whether to send one, if there is no event

	mu   sync.Mutex // of sending
	sent int        // events and comments
}

// eventConn is where a stream is sent.
type eventConn interface {
	wait(time.Duration) error // nil after this time; an error when the client has left, or after stop
	send([]byte) error
	stop()
}

// Why a stream ends.
var (
	errClientLeft = errors.New("the client left")
	errExpired    = errors.New("the access token expired")
)

// events begins a stream.
func (r *responder) events(c *gin.Context, answer wire.Answer) {
	r.beginStream(c, "text/event-stream")
	if wire.MethodOf(c.Request) == http.MethodHead {
		answer.Events.Close()
		return
	}
	s := &eventStream{
		responder: r, Events: answer.Events, began: r.Now(), requestID: requestIDOf(c), store: answer.Store, caller: answer.Caller,
	}
	s.ctx, s.end = context.WithCancelCause(r.Ending)
	held := connectionOf(c.Request)
	if held == nil { // HTTP/2: other responses share the connection
		requestContextOf(c.Request.Context()).ended(false)
		c.Header(gzhttp.HeaderNoCompression, "1") // a compressor would take memory
		ctx, cancel := context.WithCancel(requestContextOf(c.Request.Context()).withoutDeadline())
		s.conn = &sharedConn{r, c.Writer, ctx, cancel}
		s.run()
		return
	}
	own := &ownConn{held.Conn, r.Stall}
	if err := own.takeOver(c); err != nil {
		s.end(err)
		s.Close()
		own.stop()
		r.fail(c, answer, fmt.Errorf("%w: take over the connection: %w", http.ErrAbortHandler, err))
	}
	s.conn = own
	go s.run()
}

// run keeps the stream until one side ends it.
func (s *eventStream) run() {
	context.AfterFunc(s.ctx, s.conn.stop)
	s.comment.Store(true) // so that the client gets the headers now
	s.Wake(s.wake)
	for s.ctx.Err() == nil {
		idle := s.Heartbeat
		if !s.Until.IsZero() {
			idle = min(idle, s.Until.Sub(s.Now()))
		}
		switch {
		case idle <= 0:
			s.sendWaiting() // the first event, if the token has expired, and is valid only by leeway
			s.end(errExpired)
		case s.conn.wait(idle) != nil:
			s.end(errClientLeft)
		default:
			s.comment.Store(true)
			s.wake()
		}
	}
	s.conn.stop()
	s.mu.Lock() // from now on, nothing is sent
	defer s.mu.Unlock()
	s.Close()
	s.Log.Info("stream", "ms", milliseconds(s.Now().Sub(s.began)), "sent", s.sent, "end", context.Cause(s.ctx).Error(),
		"request_id", s.requestID, "store", s.store, "caller", string(s.caller))
}

// wake makes a goroutine send what waits. If there is one already, it looks again.
func (s *eventStream) wake() {
	if s.wakes.Add(1) > 1 {
		return
	}
	go func() {
		for n := int32(1); n > 0; n = s.wakes.Add(-n) {
			s.sendWaiting()
		}
	}()
}

func (s *eventStream) sendWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.ctx.Err() == nil {
		part, err := s.Next()
		if s.comment.Swap(false) && part == nil {
			part = []byte(": \n\n") // so that client, proxies and service notice a broken connection
		}
		if part != nil {
			s.sent++
			err = errors.Join(s.conn.send(part), err)
		}
		if err != nil {
			s.end(err)
		}
		if part == nil {
			return
		}
	}
}

// ownConn is a connection that was taken from net/http. Its end is that of the response.
type ownConn struct {
	net.Conn
	stall time.Duration
}

// takeOver takes the connection from net/http and sends the head of the response.
func (c *ownConn) takeOver(g *gin.Context) error {
	if _, _, err := g.Writer.Hijack(); err != nil {
		return err
	}
	h := g.Writer.Header()
	h.Set("Connection", "close")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	head := bytes.NewBufferString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(head)
	head.WriteString("\r\n")
	return c.send(head.Bytes())
}

func (c *ownConn) wait(t time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(t)); err != nil {
		return err
	}
	var b [16]byte
	for range (64 << 10) / len(b) { // what a client sends after its request is ignored
		if _, err := c.Read(b[:]); errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return errClientLeft
}

func (c *ownConn) send(part []byte) error {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return err
	}
	_, err := c.Write(part)
	return err
}

func (c *ownConn) stop() { c.Close() }

// sharedConn is a response of net/http.
type sharedConn struct {
	*responder
	w      http.ResponseWriter
	ctx    context.Context // ends when the client leaves
	cancel context.CancelFunc
}

func (c *sharedConn) wait(t time.Duration) error {
	select {
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-time.After(t):
		return nil
	}
}

func (c *sharedConn) send(part []byte) error {
	err := c.responder.send(c.w, part)
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Time{}) // over HTTP/2 it also ends a stream that sends nothing
	return err
}

func (c *sharedConn) stop() { c.cancel() }
