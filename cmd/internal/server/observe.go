package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/cmd/internal/telemetry"
)

// statusClientGone is the status in the log and the metrics of a request whose client
// disconnected before the response, or sent its body too slowly. No client sees it.
const statusClientGone = 499

// Bounds, in bytes, of texts in the log that a caller or a failed call chooses.
const (
	maxLoggedMethod = 16
	maxLoggedError  = 2 << 10
)

// observe logs and counts each request. The log has the route instead of the path, and
// no header, query or body, so that it never contains tokens or e-mail addresses.
func observe(log *slog.Logger, metrics *telemetry.Metrics, now func() time.Time) gin.HandlerFunc {
	return func(c *gin.Context) {
		start, client, aborted := now(), c.Request.Context(), true
		metrics.RequestBegan()
		defer func() { record(c, log, metrics, client, now().Sub(start), aborted) }()
		c.Next()
		aborted = false
	}
}

// record ends observe. aborted means that the connection will be closed without a
// response.
func record(c *gin.Context, log *slog.Logger, metrics *telemetry.Metrics, client context.Context, took time.Duration, aborted bool) {
	route := cmp.Or(c.FullPath(), "unmatched")
	status := c.Writer.Status()
	if aborted || status >= http.StatusInternalServerError && client.Err() != nil {
		status = statusClientGone
	}
	method := methodOf(c.Request)
	metrics.RequestEnded(method, route, status, took)

	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	if !log.Enabled(client, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", cut(method, maxLoggedMethod)),
		slog.String("route", route),
		slog.Int("status", status),
		slog.Float64("ms", float64(took.Microseconds())/1000),
		slog.Int("bytes", max(c.Writer.Size(), 0)),
		slog.String("request_id", requestIDOf(c)),
	}
	if last := c.Errors.Last(); last != nil {
		attrs = append(attrs, slog.String("code", string(problemOf(last.Err).Code)))
		if level == slog.LevelError {
			attrs = append(attrs, slog.String("err", cut(last.Error(), maxLoggedError)))
		}
	}
	// slog.Logger would look up the calling line of code for each record.
	line := slog.NewRecord(time.Now(), level, "request", 0)
	line.AddAttrs(attrs...)
	_ = log.Handler().Handle(client, line)
}

// cut returns at most n bytes of s.
func cut(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
