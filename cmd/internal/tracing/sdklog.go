package tracing

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
)

// logSDK sends to a log what the SDK would print on stderr. The SDK has one log for the process.
func logSDK(log *slog.Logger) {
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.WarnContext(context.Background(), "OpenTelemetry reports an error", "err", err)
	}))
}
