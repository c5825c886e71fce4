package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/problem"
	"commerce/cart/wire"
	"commerce/cmd/internal/tracing"
)

// statusClientGone is the status in the log and the metrics if the client disconnected before
// the response, or sent its body too slowly. No client sees it.
const statusClientGone = 499

// Maximum bytes of logged texts that come from callers or failed calls.
const (
	maxLoggedMethod = 16
	maxLoggedError  = 2 << 10
)

// slowRequest is the time from which the line of a request says where its time went.
const slowRequest = 100 * time.Millisecond

type served struct {
	*requestContext
	tracing.Response
	took    time.Duration
	bytes   int
	traceID string         // "": not traced
	err     error          // nil: none
	problem *problem.Error // what the client saw of err
	refused int            // if a limit refused it: how often the client was, since its previous line
}

// observe logs, counts and traces each request. It records the route instead of the path, and no
// header, query or body, so that nothing contains tokens or e-mail addresses. It also sets the
// request's ID, and recovers from panics.
func (r *responder) observe(c *gin.Context) {
	start, client := r.Now(), c.Request.Context()
	r.Metrics.RequestBegan()
	c.Header("X-Request-Id", requestIDFrom(c.GetHeader("X-Request-Id")))
	ctx, span := r.Traces.Begin(c.Request, r.origins.trusts(c.Request.RemoteAddr))
	request := newRequestContext(ctx, time.Now().Add(r.Deadline))
	defer request.stop()
	request.Call = wire.Call{Method: wire.MethodOf(c.Request), Client: wire.Client(c)}
	c.Request = c.Request.WithContext(request)
	request.ended = func(aborted bool) {
		request.ended = func(bool) {}
		s := endOf(c, client, request, aborted)
		s.took, s.traceID = r.Now().Sub(start)-request.paused, span.TraceID()
		if s.overLimit() {
			s.Route = notRouted
		}
		r.Metrics.RequestEnded(s.Method, s.Route, s.Status, s.took, s.traceID)
		span.End(s.Response)
		r.logRequest(client, &s)
	}
	defer func() {
		panicked := recover()
		aborted := panicked != nil && !r.failAfterPanic(c, panicked)
		request.ended(aborted)
		if aborted {
			panic(panicked)
		}
	}()
	c.Next()
}

// endOf describes a request that has ended, aborted if its connection closes without a response.
func endOf(c *gin.Context, client context.Context, request *requestContext, aborted bool) served {
	s := served{
		requestContext: request, bytes: max(c.Writer.Size(), 0),
		Response: tracing.Response{
			Method: request.Method, Route: cmp.Or(c.FullPath(), tracing.Unmatched), Status: c.Writer.Status(),
			Store: request.store, Caller: string(request.caller), RequestID: requestIDOf(c),
		},
	}
	if last := c.Errors.Last(); last != nil {
		s.err, s.problem = last, problemOf(last.Err)
		s.Code = string(s.problem.Code)
	}
	switch broken := aborted && errors.Is(s.err, errAfterFirstPart); {
	case broken && client.Err() == nil:
		s.Status = s.problem.HTTPStatus() // the client got 200 and an incomplete response
	case aborted, s.failed() && client.Err() != nil:
		s.Status = statusClientGone
	}
	return s
}

func (s *served) failed() bool { return s.Status >= http.StatusInternalServerError }

// ofAgent reports whether an agent is why the request failed, so that the service has not.
func (s *served) ofAgent() bool { return s.problem != nil && s.problem.Kind == problem.KindAgent }

// overLimit reports whether a limit has refused the request with a 503, so that the service has not failed.
func (s *served) overLimit() bool {
	return s.failed() && s.problem != nil && s.problem.Budget.Name != ""
}

func (r *responder) logRequest(ctx context.Context, s *served) {
	level := slog.LevelInfo
	if s.failed() && !s.ofAgent() && !s.overLimit() {
		level = slog.LevelError
	}
	if !r.Log.Enabled(ctx, level) {
		return
	}
	if s.problem != nil && s.problem.Budget.Name != "" {
		if s.refused = r.repeats.count(s.Client+" "+s.problem.Budget.Name, time.Second, r.Now()); s.refused == 0 {
			return
		}
	}
	if s.problem != nil && s.problem.Kind == problem.KindCurrency && r.repeats.count("currency of "+strconv.FormatInt(s.store, 10), time.Minute, r.Now()) == 0 {
		s.err = nil
	}
	// slog.Logger would look up the caller's source line for each record.
	line := slog.NewRecord(time.Now(), level, "request", 0)
	var room [16]slog.Attr // avoids an allocation
	line.AddAttrs(s.appendAttrs(room[:0])...)
	_ = r.Log.Handler().Handle(ctx, line)
}

func (s *served) appendAttrs(attrs []slog.Attr) []slog.Attr {
	attrs = append(attrs,
		slog.String("method", truncate(s.Method, maxLoggedMethod)),
		slog.String("route", s.Route),
		slog.Int("status", s.Status),
		slog.Float64("ms", milliseconds(s.took)),
		slog.Int("bytes", s.bytes),
		slog.String("request_id", s.RequestID),
	)
	if s.Store != 0 {
		attrs = append(attrs, slog.Int64("store", s.Store), slog.String("caller", s.Caller))
	}
	if s.traceID != "" {
		attrs = append(attrs, slog.String("trace_id", s.traceID))
	}
	if s.problem != nil {
		attrs = append(attrs, slog.String("code", s.Code))
		if s.problem.Kind != "" {
			attrs = append(attrs, slog.String("kind", s.problem.Kind))
		}
		if limit := s.problem.Budget.Name; limit != "" {
			attrs = append(attrs, slog.String("limit", limit), slog.String("client", s.Client), slog.Int("refused", s.refused))
		}
	}
	if s.failed() && s.err != nil || s.ofAgent() && s.problem.Cause != nil {
		attrs = append(attrs, slog.String("err", truncate(s.err.Error(), maxLoggedError)))
	}
	if s.failed() || s.took >= slowRequest {
		attrs = s.appendPlaces(attrs)
	}
	return attrs
}

// truncate shortens s to at most n bytes, and then appends an ellipsis.
func truncate(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// requestIDFrom returns the caller's ID if it is 1 to 64 characters of A-Za-z0-9._-, else a new one.
// It identifies the request in the log and in the response.
func requestIDFrom(given string) string {
	strange := func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !letter && c != '.' && c != '_' && c != '-'
	}
	if given == "" || len(given) > 64 || strings.ContainsFunc(given, strange) {
		return rand.Text()
	}
	return given
}

func requestIDOf(c *gin.Context) string { return c.Writer.Header().Get("X-Request-Id") }
