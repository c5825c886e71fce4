package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"commerce/deploy/assert"
)

func TestFaults_NameEachWrongVariable(t *testing.T) {
	t.Parallel()
	_, pemFile, keyFile := issue(t)
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for settings, want := range map[string]string{
		"OTEL_TRACES_SAMPLER=half":                                                                                                          "", // traces are off
		endpoint + "=http://c:4318":                                                                                                         "",
		endpoint + "=https://user:hunter2@c/otlp":                                                                                           "",
		endpoint + "=c:4318":                                                                                                                endpoint,
		endpoint + "=grpc://c:4317":                                                                                                         endpoint,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=//c":                                                                                            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                                                                             "OTEL_EXPORTER_OTLP_PROTOCOL",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json":                                                                 "",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf":                                                                    "OTEL_EXPORTER_OTLP_PROTOCOL",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf":                                                             "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
		endpoint + "=http://c OTEL_TRACES_EXPORTER=zipkin":                                                                                  "OTEL_TRACES_EXPORTER",
		endpoint + "=http://c OTEL_TRACES_EXPORTER=otlp":                                                                                    "",
		endpoint + "=http://c OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=0.1":                                     "",
		endpoint + "=http://c OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=2":                                                   "OTEL_TRACES_SAMPLER_ARG",
		endpoint + "=http://c OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=NaN":                                                 "OTEL_TRACES_SAMPLER_ARG",
		endpoint + "=http://c OTEL_TRACES_SAMPLER=always_on OTEL_TRACES_SAMPLER_ARG=none":                                                   "",
		endpoint + "=http://c OTEL_TRACES_EXPORTER=NONE OTEL_TRACES_SAMPLER=half":                                                           "", // traces are off
		endpoint + "=http://c OTEL_TRACES_EXPORTER=OTLP OTEL_TRACES_SAMPLER=Always_On":                                                      "",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_PROTOCOL=HTTP/JSON":                                                                        "OTEL_EXPORTER_OTLP_PROTOCOL",
		endpoint + "=http://c OTEL_RESOURCE_ATTRIBUTES=a=b,c=%20d=e":                                                                        "",
		endpoint + "=http://c OTEL_RESOURCE_ATTRIBUTES=a":                                                                                   "OTEL_RESOURCE_ATTRIBUTES",
		endpoint + "=http://c OTEL_RESOURCE_ATTRIBUTES=a=b,":                                                                                "OTEL_RESOURCE_ATTRIBUTES",
		endpoint + "=http://c OTEL_RESOURCE_ATTRIBUTES=a=%zz":                                                                               "OTEL_RESOURCE_ATTRIBUTES",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_HEADERS=api-key=hunter2,authorization=Basic%20aGk=":                                        "",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_HEADERS=hunter2":                                                                           "OTEL_EXPORTER_OTLP_HEADERS",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_HEADERS=:=hunter2":                                                                         "OTEL_EXPORTER_OTLP_HEADERS",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=hunter2%zz":                                                               "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_HEADERS=a=hunter2%0A":                                                                      "OTEL_EXPORTER_OTLP_HEADERS",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_TIMEOUT=10000":                                                                             "",
		endpoint + "=http://c OTEL_BSP_MAX_QUEUE_SIZE=999999999999":                                                                         "OTEL_BSP_MAX_QUEUE_SIZE",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_TIMEOUT=10s":                                                                               "OTEL_EXPORTER_OTLP_TIMEOUT",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=0":                                                                          "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_BSP_MAX_QUEUE_SIZE=9":                                                "",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_COMPRESSION=zstd":                                                                          "OTEL_EXPORTER_OTLP_COMPRESSION",
		endpoint + "=http://c OTEL_BSP_SCHEDULE_DELAY=5s OTEL_BSP_MAX_QUEUE_SIZE=-1":                                                        "OTEL_BSP_MAX_QUEUE_SIZE OTEL_BSP_SCHEDULE_DELAY",
		endpoint + "=https://c OTEL_EXPORTER_OTLP_CERTIFICATE=/none":                                                                        "OTEL_EXPORTER_OTLP_CERTIFICATE",
		endpoint + "=https://c OTEL_EXPORTER_OTLP_CERTIFICATE=/dev/zero":                                                                    "OTEL_EXPORTER_OTLP_CERTIFICATE",
		endpoint + "=https://c OTEL_EXPORTER_OTLP_CERTIFICATE=tracing.go":                                                                   "OTEL_EXPORTER_OTLP_CERTIFICATE",
		endpoint + "=https://c OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=tracing.go":                                                            "OTEL_EXPORTER_OTLP_CLIENT_KEY",
		endpoint + "=https://c OTEL_EXPORTER_OTLP_CLIENT_KEY=tracing.go":                                                                    "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
		endpoint + "=https://c OTEL_EXPORTER_OTLP_CERTIFICATE=" + pemFile:                                                                   "",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_CERTIFICATE=" + pemFile:                                                                    "OTEL_EXPORTER_OTLP_CERTIFICATE",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE=" + pemFile + " OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY=" + keyFile: "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY",
		endpoint + "=http://c OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c OTEL_EXPORTER_OTLP_CERTIFICATE=" + pemFile:                       "",
		endpoint + "=c OTEL_SDK_DISABLED=TRUE":                                                                                              "",
	} {
		faults := Faults(environment(settings))
		var names []string
		for _, fault := range faults {
			names = append(names, fault.Name)
		}
		slices.Sort(names)
		assert.Equal(t, strings.Join(names, " "), want, "%s: faults of", settings)
		assert.That(t, !strings.Contains(fmt.Sprint(faults.Err()), "hunter2"), "%s: a password in %v", settings, faults.Err())
	}
}

func environment(pairs string) func(string) string {
	all := map[string]string{}
	for _, pair := range strings.Fields(pairs) {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return func(name string) string { return all[name] }
}

type flaky []error

func (f *flaky) ExportSpans(context.Context, []sdk.ReadOnlySpan) error {
	err := (*f)[0]
	*f = (*f)[1:]
	return err
}

func (*flaky) Shutdown(context.Context) error { return nil }

func TestReporting_LogsOnlyTheBeginAndTheEndOfAnOutage(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	batches := flaky{nil, down, down, down, nil, nil, down}
	var log bytes.Buffer
	e := &reporting{SpanExporter: &batches, log: slog.New(slog.NewTextHandler(&log, nil))}
	for range len(batches) {
		err := e.ExportSpans(t.Context(), nil)
		assert.That(t, err == nil, "the SDK would log %v again", err)
	}
	if warned, ended := strings.Count(log.String(), "level=WARN"), strings.Count(log.String(), "level=INFO"); warned != 2 || ended != 1 {
		t.Errorf("%d warnings and %d ends of two outages, of which one ended:\n%s", warned, ended, log.String())
	}
}

// Not parallel, because the SDK has one log for the process.
func TestLogSDK_LogsWhatTheSDKWouldPrint(t *testing.T) {
	var log bytes.Buffer
	logSDK(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { logSDK(slog.New(slog.DiscardHandler)) })
	otel.Handle(errors.New("queue is full"))
	got := log.String()
	assert.That(t, strings.Contains(got, "level=WARN") && strings.Contains(got, "queue is full"), "logged %q", got)
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
		err := assert.Must(New(t.Context(), Config{Log: slog.New(handler)}))(t).Close(t.Context())
		assert.That(t, err == nil, "%v", err)
		got := log.String()
		assert.That(t, strings.Contains(got, "TracerProvider created") && !strings.Contains(got, "hunter2"), "logged %q", got)
	}
}
