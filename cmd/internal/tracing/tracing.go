// Package tracing records traces of requests with OpenTelemetry, and sends them to a collector.
//
// A span has names that the program chooses: routes, scripts, statements and error codes. It
// has no key, parameter, path, query, header, body, address or error text, so that traces never
// contain tokens or personal data.
package tracing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"commerce/auth/timing"
	"commerce/cmd/internal/tracing/otlp"
)

// Traces records traces. It is safe for concurrent use. A nil *Traces records nothing.
type Traces struct {
	exporter sdk.SpanExporter
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

type Config struct {
	Version  string           // of the program
	Exporter sdk.SpanExporter // default: the collector of the environment
	Log      *slog.Logger     // default slog.Default
}

// New starts recording traces. The OTEL_ environment variables configure the exporter, sampling
// and the resource. New does not connect to the collector. The caller must call Close.
func New(ctx context.Context, c Config) (*Traces, error) {
	c.Log = cmp.Or(c.Log, slog.Default())
	logSDK(c.Log)
	if c.Exporter == nil {
		config, err := collector(os.Getenv, c.Version)
		if err != nil {
			return nil, fmt.Errorf("configure the exporter: %w", err)
		}
		c.Exporter = otlp.New(config)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "commerce"), attribute.String("service.version", c.Version)),
		resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithFromEnv(), // last: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence
	)
	if err != nil {
		return nil, fmt.Errorf("describe the process: %w", err)
	}
	reports := &reporting{SpanExporter: c.Exporter, log: c.Log}
	provider := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithBatcher(reports))
	return &Traces{c.Exporter, provider, provider.Tracer(timing.Scope)}, nil
}

// Close sends the remaining spans. It stops when ctx ends.
func (t *Traces) Close(ctx context.Context) error {
	err := t.provider.Shutdown(ctx)
	if err != nil {
		_ = t.exporter.Shutdown(ctx) // ends the export in progress
	}
	return err
}

// reporting is an exporter that logs when exports begin to fail and when they succeed again.
// The SDK would log each failed batch, that is, every few seconds.
type reporting struct {
	sdk.SpanExporter
	log     *slog.Logger
	failing atomic.Bool
}

// ExportSpans implements SpanExporter. It always returns nil, because it has logged the error.
func (e *reporting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	switch err := e.SpanExporter.ExportSpans(ctx, spans); {
	case err != nil && !e.failing.Swap(true):
		e.log.WarnContext(ctx, "cannot send traces; they are dropped until the collector accepts them", "err", err)
	case err == nil && e.failing.Swap(false):
		e.log.InfoContext(ctx, "traces are sent again")
	}
	return nil
}

// logSDK sends to a log what the SDK would print on stderr. The SDK has one log for the process.
func logSDK(log *slog.Logger) {
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.WarnContext(context.Background(), "OpenTelemetry reports an error", "err", err)
	}))
}
