package telemetry

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"commerce/auth/timing"
	"commerce/deploy/assert"
)

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
		got, _ := statementName(sql)
		assert.That(t, got == want, "%q: %q, want %q", sql, got, want)
	}
}

// The text of an error may quote a caller; what a span has may not.
func TestFailedSpans_HaveWordsOfTheServerOrOurOwn(t *testing.T) {
	t.Parallel()
	recorded := tracetest.NewInMemoryExporter()
	request, _ := sdk.NewTracerProvider(sdk.WithSyncer(recorded)).Tracer("test").Start(t.Context(), "request")
	ofPostgres := func() func(error) {
		_, end := timing.Call(request, "postgresql", "postgres list")
		return end
	}
	ofRedis := func() func(error) {
		_, end := redisStep(request, []redis.Cmder{redis.NewStatusCmd(t.Context(), "ping")})
		return func(err error) { end(spanFailure(err)) }
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tc := range []struct {
		begin        func() (end func(error))
		err          error
		kind, status string
	}{
		{ofPostgres, fmt.Errorf("read: %w", context.DeadlineExceeded), "timeout", ""},
		{ofPostgres, fmt.Errorf("read: %w", context.Canceled), "canceled", ""},
		{ofPostgres, fmt.Errorf("write: %w", refused), "connection", ""},
		{ofPostgres, io.ErrUnexpectedEOF, "failed", ""},
		{ofPostgres, fmt.Errorf("select: %w", &pgconn.PgError{Code: "42501", Message: "planted"}), "42501", "42501"},
		{ofRedis, refused, "connection", ""},
		{ofRedis, reply("READONLY You can't write against a read only replica."), "READONLY", "READONLY"},
		{ofRedis, fmt.Errorf("add: %w", reply("WRONGTYPE Operation against a key")), "WRONGTYPE", "WRONGTYPE"},
		{ofRedis, reply("planted' was not understood"), "ERR", "ERR"},
	} {
		recorded.Reset()
		tc.begin()(tc.err)
		got := recorded.GetSpans()[0]
		has := map[string]string{}
		for _, a := range got.Attributes {
			has[string(a.Key)] = a.Value.String()
		}
		assert.That(t, got.Status.Code == codes.Error && got.Status.Description == tc.kind && has["error.type"] == tc.kind && has["db.response.status_code"] == tc.status,
			"%v: status %v and %v, want %q and %q", tc.err, got.Status, has, tc.kind, tc.status)
	}
}

func TestPipelineOperation_NamesOnlyACommonCommand(t *testing.T) {
	t.Parallel()
	recorded := tracetest.NewInMemoryExporter()
	request, _ := sdk.NewTracerProvider(sdk.WithSyncer(recorded)).Tracer("test").Start(t.Context(), "request")
	for want, cmds := range map[string][]redis.Cmder{
		"PIPELINE hgetall": {redis.NewCmd(t.Context(), "hgetall", "a"), redis.NewCmd(t.Context(), "hgetall", "b")},
		"PIPELINE":         {redis.NewCmd(t.Context(), "pexpire", "a"), redis.NewCmd(t.Context(), "hgetall", "a")},
	} {
		recorded.Reset()
		_, end := redisStep(request, cmds)
		end(nil)
		got := recorded.GetSpans()[0].Attributes
		assert.That(t, slices.Contains(got, attribute.String("db.operation.name", want)), "%v, want %q", got, want)
	}
}
