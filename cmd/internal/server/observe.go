package server

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"
)

func contextWithTimeout(c *gin.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), d)
}

func stack() string { return string(debug.Stack()) }

// observe writes one line a request and counts it. It names the route, not the
// path, and no header, query or body: tokens and e-mail addresses stay out.
func observe(log *slog.Logger, metrics *Metrics) gin.HandlerFunc {
	return func(c *gin.Context) {
		start := time.Now()
		c.Next()
		took := time.Since(start)
		route := c.FullPath()
		if route == "" {
			route = "unmatched"
		}
		status := c.Writer.Status()
		metrics.observe(c.Request.Method, route, status, took)

		level := slog.LevelInfo
		if status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		ctx := c.Request.Context()
		if !log.Enabled(ctx, level) {
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
		log.LogAttrs(ctx, level, "request", attrs...)
	}
}
