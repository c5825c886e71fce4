package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

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
		assert.Equal(t, strings.Join(slices.Sorted(maps.Keys(faults)), " "), want, "%s: faults of", settings)
		assert.That(t, !strings.Contains(fmt.Sprint(faults), "hunter2"), "%s: a password in %v", settings, faults)
	}
}

// environment returns the variables of NAME=value pairs.
func environment(pairs string) func(string) string {
	all := map[string]string{}
	for _, pair := range strings.Fields(pairs) {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return func(name string) string { return all[name] }
}

func TestStatementName_IsTheCommentOrTheFirstWord(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"/* list */ SELECT 1":               "list",
		"\n\t/* summary */\n\tSELECT 1":     "summary",
		"SELECT 'secret'":                   "select",
		"\n\tUPDATE api_tokens SET x = 'y'": "update",
		"/*list*/ SELECT 1":                 "/*list*/",
		"":                                  "statement",
		"begin":                             "begin",
	} {
		assert.Equal(t, statementName(sql), want, "%q", sql)
	}
}

// reply is an error that Redis has sent.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

var _ redis.Error = reply("")

// The text of an error may quote a caller; what a span has may not.
func TestFailedSpans_HaveWordsOfTheServerOrOurOwn(t *testing.T) {
	t.Parallel()
	recorded := tracetest.NewInMemoryExporter()
	tracer := sdk.NewTracerProvider(sdk.WithSyncer(recorded)).Tracer("test")
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tc := range []struct {
		fail         func(trace.Span, error)
		err          error
		kind, status string
	}{
		{failPostgres, fmt.Errorf("read: %w", context.DeadlineExceeded), "timeout", ""},
		{failPostgres, fmt.Errorf("read: %w", context.Canceled), "canceled", ""},
		{failPostgres, fmt.Errorf("write: %w", refused), "connection", ""},
		{failPostgres, io.ErrUnexpectedEOF, "failed", ""},
		{failPostgres, fmt.Errorf("select: %w", &pgconn.PgError{Code: "42501", Message: "planted"}), "42501", "42501"},
		{failRedis, refused, "connection", ""},
		{failRedis, reply("READONLY You can't write against a read only replica."), "READONLY", "READONLY"},
		{failRedis, fmt.Errorf("add: %w", reply("WRONGTYPE Operation against a key")), "WRONGTYPE", "WRONGTYPE"},
		{failRedis, reply("planted' was not understood"), "ERR", "ERR"},
	} {
		recorded.Reset()
		_, span := tracer.Start(t.Context(), "span")
		tc.fail(span, tc.err)
		span.End()
		got := recorded.GetSpans()[0]
		has := map[string]string{}
		for _, a := range got.Attributes {
			has[string(a.Key)] = a.Value.String()
		}
		if got.Status.Code != codes.Error || got.Status.Description != tc.kind || has["error.type"] != tc.kind || has["db.response.status_code"] != tc.status {
			t.Errorf("%v: status %v and %v, want %q and %q", tc.err, got.Status, has, tc.kind, tc.status)
		}
	}
}

func TestPipelineOperation_NamesOnlyACommonCommand(t *testing.T) {
	t.Parallel()
	for want, cmds := range map[string][]redis.Cmder{
		"PIPELINE hgetall": {redis.NewCmd(t.Context(), "hgetall", "a"), redis.NewCmd(t.Context(), "hgetall", "b")},
		"PIPELINE":         {redis.NewCmd(t.Context(), "pexpire", "a"), redis.NewCmd(t.Context(), "hgetall", "a")},
	} {
		assert.Equal(t, pipelineOperation(names(cmds)), want, "pipelineOperation(names(cmds))")
	}
}

// flaky is an exporter with one error for each batch.
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

// Without traces, nothing is installed.
func TestTraces_AreNothingWhenTheyAreOff(t *testing.T) {
	t.Parallel()
	var off *Traces
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	off.TraceRedis(client)
	assert.That(t, off.PostgresTracer() == nil && off.Close(t.Context()) == nil,
		"traces that are off trace Postgres, or must be closed")
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
