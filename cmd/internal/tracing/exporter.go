package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// reporting is an exporter that logs when exports begin to fail and when they succeed again.
// The SDK would log each failed batch, that is, every few seconds.
type reporting struct {
	sdk.SpanExporter
	log     *slog.Logger
	failing atomic.Bool
}

// ExportSpans implements SpanExporter. It always returns nil, because it has logged the error.
func (e *reporting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	failing := err != nil
	if e.failing.Swap(failing) == failing {
		return nil
	}
	if failing {
		e.log.WarnContext(ctx, "cannot send traces; they are dropped until the collector accepts them", "err", err)
	} else {
		e.log.InfoContext(ctx, "traces are sent again")
	}
	return nil
}
