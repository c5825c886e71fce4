package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/problem"
	"commerce/cmd/internal/telemetry"
	"commerce/cmd/internal/tracing"
)

// statusClientGone is the status in the log and the metrics of a request whose client
// disconnected before the response, or sent its body too slowly. No client sees it.
const statusClientGone = 499

// Bounds, in bytes, of texts in the log that a caller or a failed call chooses.
const (
	maxLoggedMethod = 16
	maxLoggedError  = 2 << 10
)

// slowRequest is the time from which the line of a request says where its time went.
const slowRequest = 250 * time.Millisecond

// observer logs, counts and traces each request. All of them have the route instead of the
// path, and no header, query or body, so that they never contain tokens or e-mail addresses.
type observer struct {
	log      *slog.Logger
	metrics  *telemetry.Metrics
	traces   *tracing.Traces
	deadline time.Duration // of each request, except for streams
	now      func() time.Time
}

// served is a request that has ended.
type served struct {
	*tally
	method, route string
	status        int
	took          time.Duration
	bytes         int
	requestID     string
	traceID       string       // "": not traced
	err           error        // nil: none
	code          problem.Code // of err; "" without an error
}

func (o *observer) handle(c *gin.Context) {
	start, client, aborted := o.now(), c.Request.Context(), true
	o.metrics.RequestBegan()
	ctx, span := o.traces.Begin(c.Request)
	limited, cancel := context.WithTimeout(ctx, o.deadline)
	defer cancel()
	t := newTally(limited, ctx)
	c.Request = c.Request.WithContext(t)
	defer func() {
		s := endOf(c, client, t, aborted)
		s.took, s.traceID = o.now().Sub(start), span.TraceID()
		o.metrics.RequestEnded(s.method, s.route, s.status, s.took)
		span.End(s.traced())
		o.write(client, &s)
	}()
	c.Next()
	aborted = false
}

// endOf describes a request that has ended. aborted means that the connection will be closed
// without a response.
func endOf(c *gin.Context, client context.Context, t *tally, aborted bool) served {
	s := served{
		tally: t, method: methodOf(c.Request), route: cmp.Or(c.FullPath(), tracing.Unmatched),
		status: c.Writer.Status(), bytes: max(c.Writer.Size(), 0), requestID: requestIDOf(c),
	}
	if aborted || s.failed() && client.Err() != nil {
		s.status = statusClientGone
	}
	if last := c.Errors.Last(); last != nil {
		s.err, s.code = last, problemOf(last.Err).Code
	}
	return s
}

func (s *served) failed() bool { return s.status >= http.StatusInternalServerError }

// write logs the line of a request.
func (o *observer) write(ctx context.Context, s *served) {
	level := slog.LevelInfo
	if s.failed() {
		level = slog.LevelError
	}
	if !o.log.Enabled(ctx, level) {
		return
	}
	// slog.Logger would look up the calling line of code for each record.
	line := slog.NewRecord(time.Now(), level, "request", 0)
	var room [16]slog.Attr // without an allocation
	line.AddAttrs(s.appendAttrs(room[:0])...)
	_ = o.log.Handler().Handle(ctx, line)
}

// appendAttrs appends the members of the line. All are plain values, which package jsonlog
// writes fastest.
func (s *served) appendAttrs(attrs []slog.Attr) []slog.Attr {
	attrs = append(attrs,
		slog.String("method", cut(s.method, maxLoggedMethod)),
		slog.String("route", s.route),
		slog.Int("status", s.status),
		slog.Float64("ms", milliseconds(s.took)),
		slog.Int("bytes", s.bytes),
		slog.String("request_id", s.requestID),
	)
	if s.store != 0 {
		attrs = append(attrs, slog.Int64("store", s.store), slog.String("caller", string(s.caller)))
	}
	if s.traceID != "" {
		attrs = append(attrs, slog.String("trace_id", s.traceID))
	}
	if s.code != "" {
		attrs = append(attrs, slog.String("code", string(s.code)))
	}
	if s.failed() && s.err != nil {
		attrs = append(attrs, slog.String("err", cut(s.err.Error(), maxLoggedError)))
	}
	if s.failed() || s.took >= slowRequest {
		attrs = s.appendPlaces(attrs)
	}
	return attrs
}

// traced returns what the request's span has.
func (s *served) traced() tracing.Response {
	return tracing.Response{
		Method: s.method, Route: s.route, Status: s.status, Code: string(s.code),
		Store: s.store, Caller: string(s.caller), RequestID: s.requestID,
	}
}

// cut returns at most n bytes of s.
func cut(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
