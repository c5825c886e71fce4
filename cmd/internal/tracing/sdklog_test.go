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
	// The exporter logs a bad variable. Faults would have refused it before.
	log.Reset()
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "10s")
	traces, err := New(t.Context(), Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close(t.Context())
	if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "10s") {
		t.Errorf("logged %q", got)
	}
}
