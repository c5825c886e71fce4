package tracing

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
)

// Not parallel, because the SDK has one log for the process.
func TestLogSDK_LogsWhatTheSDKWouldPrint(t *testing.T) {
	var log bytes.Buffer
	logSDK(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { logSDK(slog.New(slog.DiscardHandler)) })
	otel.Handle(errors.New("queue is full"))
	if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "queue is full") {
		t.Errorf("logged %q", got)
	}
}

// At the level debug, the SDK logs its configuration, of which the exporter is a part.
func TestLogSDK_LogsNoCredentialOfTheExporter(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:hunter2@127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=hunter2")
	t.Cleanup(func() { logSDK(slog.New(slog.DiscardHandler)) })
	var log bytes.Buffer
	all := &slog.HandlerOptions{Level: slog.LevelDebug}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, all), slog.NewJSONHandler(&log, all)} {
		log.Reset()
		traces, err := New(t.Context(), Config{Log: slog.New(handler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := traces.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := log.String(); !strings.Contains(got, "TracerProvider created") || strings.Contains(got, "hunter2") {
			t.Errorf("logged %q", got)
		}
	}
}
