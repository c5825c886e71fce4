// Package tracing records traces of requests with OpenTelemetry, and sends them to a collector
// over OTLP/HTTP.
//
// A span has names that the program chooses: routes, scripts, statements and error codes. It
// has no key, parameter, path, query, header, body, address or error text, so that traces never
// contain tokens or personal data.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"commerce/auth/timing"
)

// Traces records traces. It is safe for concurrent use. A nil *Traces records nothing and
// installs no hooks.
type Traces struct {
	exporter sdk.SpanExporter
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Config configures Traces.
type Config struct {
	Version  string           // of the program
	Exporter sdk.SpanExporter // default: OTLP over HTTP, configured by the environment
	Log      *slog.Logger     // default slog.Default
}

// retries limits how long the exporter retries a batch. A short limit logs an outage soon, and
// drops fewer of the later spans that wait in the queue.
var retries = otlptracehttp.RetryConfig{
	Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: 10 * time.Second,
}

// New starts recording traces. The OTEL_ environment variables configure the exporter, sampling
// and the resource. New does not connect to the collector. The caller must call Close.
func New(ctx context.Context, c Config) (*Traces, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	logSDK(c.Log)
	if c.Exporter == nil {
		otlp, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(retries))
		if err != nil {
			return nil, fmt.Errorf("create exporter: %w", err)
		}
		c.Exporter = otlp
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "commerce"), attribute.String("service.version", c.Version)),
		resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithFromEnv(), // last: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence
	)
	if err != nil {
		return nil, fmt.Errorf("describe the process: %w", err)
	}
	t := &Traces{exporter: c.Exporter}
	t.provider = sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithBatcher(&reporting{SpanExporter: c.Exporter, log: c.Log}))
	t.tracer = t.provider.Tracer(timing.Scope)
	return t, nil
}

// Close sends the remaining spans. It stops when ctx ends.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	err := t.provider.Shutdown(ctx)
	if err != nil {
		_ = t.exporter.Shutdown(ctx) // stops the retries of a batch
	}
	return err
}
