package server

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// statusClientGone is what the log and the metrics have of a request whose client
// hung up before it was answered. Nobody sees it as a status.
const statusClientGone = 499

// observe writes one line a request and counts it. It names the route, not the
// path, and no header, query or body: tokens and e-mail addresses stay out.
func observe(log *slog.Logger, metrics *Metrics) gin.HandlerFunc {
	return func(c *gin.Context) {
		start, client := time.Now(), c.Request.Context()
		c.Next()
		took := time.Since(start)
		route := c.FullPath()
		if route == "" {
			route = "unmatched"
		}
		status := c.Writer.Status()
		if status >= http.StatusInternalServerError && client.Err() != nil {
			status = statusClientGone
		}
		metrics.observe(c.Request.Method, route, status, took)

		level := slog.LevelInfo
		if status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		if !log.Enabled(client, level) {
			return
		}
		attrs := []slog.Attr{
			slog.String("method", c.Request.Method),
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
				attrs = append(attrs, slog.String("err", last.Error()))
			}
		}
		log.LogAttrs(client, level, "request", attrs...)
	}
}
