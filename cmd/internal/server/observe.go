package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// statusClientGone is what the log and the metrics have of a request whose client hung
// up before it was answered, or sent its body too slowly. No client sees this status.
const statusClientGone = 499

// What a log line has of a text that a caller or a failed call decides, in bytes.
const (
	maxLoggedMethod = 16
	maxLoggedError  = 2 << 10
)

// observe writes one line a request and counts it. It names the route, not the path,
// and no header, query or body, so that tokens and e-mail addresses stay out.
func observe(log *slog.Logger, metrics *Metrics) gin.HandlerFunc {
	return func(c *gin.Context) {
		start, client, aborted := time.Now(), c.Request.Context(), true
		defer func() { record(c, log, metrics, client, time.Since(start), aborted) }()
		c.Next()
		aborted = false
	}
}

// record is the end of observe. aborted says that the connection is about to be
// closed without an answer.
func record(c *gin.Context, log *slog.Logger, metrics *Metrics, client context.Context, took time.Duration, aborted bool) {
	route := cmp.Or(c.FullPath(), "unmatched")
	status := c.Writer.Status()
	if aborted || status >= http.StatusInternalServerError && client.Err() != nil {
		status = statusClientGone
	}
	method := methodOf(c.Request)
	metrics.observe(method, route, status, took)

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
		slog.String("request_id", c.GetString(requestIDKey)),
	}
	if last := c.Errors.Last(); last != nil {
		if known := asProblem(last.Err); known.Code() != "" {
			attrs = append(attrs, slog.String("code", known.Code()))
		}
		if level == slog.LevelError {
			attrs = append(attrs, slog.String("err", cut(last.Error(), maxLoggedError)))
		}
	}
	log.LogAttrs(client, level, "request", attrs...)
}

// cut returns at most n bytes of s.
func cut(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
