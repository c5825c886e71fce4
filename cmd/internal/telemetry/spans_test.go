package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"commerce/auth/limit"
	"commerce/auth/timing"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestStatementName_IsTheCommentOrTheFirstWord(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]struct{ name, label string }{
		"/* list */ SELECT 1":                   {"list", "list"},
		"/* store */\nSELECT 1":                 {"store", "store"},
		"\n\t/* summary */\n\tSELECT 1":         {"summary", "summary"},
		"SELECT 'secret'":                       {"select", "other"},
		"SELECT /* late */ 1":                   {"select", "other"},
		"\n\tUPDATE api_tokens SET x = 'y'":     {"update", "other"},
		"/*list*/ SELECT 1":                     {"/*list*/", "other"},
		"/* open":                               {"/*", "other"},
		"":                                      {"statement", "other"},
		"commit":                                {"commit", "commit"},
		"begin isolation level repeatable read": {"begin", "begin"},
	} {
		name, label := statementName(sql)
		assert.That(t, name == want.name && label == want.label, "%q: %q and %q, want %+v", sql, name, label, want)
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

func dialMeasured(t *testing.T, redisURL string) (redis.UniversalClient, *Metrics) {
	t.Helper()
	client := assert.Must(connect.Redis(redisURL, ephemeral.PatientRedis))(t)
	t.Cleanup(func() { client.Close() })
	m := New("test")
	m.ObserveRedis(client)
	return client, m
}

func TestRedis_EachCommandCountsOnce(t *testing.T) {
	t.Parallel()
	for kind, url := range map[string]func(testing.TB) string{ // servers of its own: other tests flush scripts
		"single":    func(tb testing.TB) string { return ephemeral.StartRedis(tb).URL },
		"cluster":   func(tb testing.TB) string { return ephemeral.StartCluster(tb).URL },
		"sentinels": func(tb testing.TB) string { return ephemeral.StartSentinels(tb).URL },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			client, m := dialMeasured(t, url(t))
			carts := redisstore.New(redisstore.Config{Client: client, TTL: redisstore.TTLs{Guest: time.Hour, Customer: time.Hour}})
			ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(time.Minute))
			defer cancel()
			customer := redisstore.CustomerRef(1, t.Name())
			change := func() {
				t.Helper()
				assert.Must(carts.Change(ctx, customer, redisstore.Conditions{}, redisstore.Attempt{CartID: "A", Limits: carttest.Limits}, cart.Change{Rule: cart.SetCodes(rand.Text())}))(t)
			}
			change() // EVALSHA may be followed by EVAL
			commits := m.commands(t, "commit")
			change()
			got := m.commands(t, "commit") - commits
			assert.That(t, got == 1, "a script counts %v times", got)
			read := func() float64 { return m.commands(t, "read_batch") + m.commands(t, "hgetall") }
			reads := read()
			assert.Must(carts.Load(ctx, customer))(t)
			got = read() - reads
			assert.That(t, got == 1, "a read counts %v times", got)
			assert.NoError(t, client.Ping(ctx).Err())
			got = m.commands(t, "ping")
			assert.That(t, got == 1, "PING counts %v times", got)
			limit := limit.NewQuota(limit.Config{Name: "test", Redis: client, Timeout: time.Minute, Rates: []limit.Rate{{Uses: 1, Per: time.Second}}})
			limit.Use(ctx, t.Name()) // EVALSHA may be followed by EVAL
			limits := m.commands(t, "limit")
			limit.Use(ctx, t.Name())
			assert.That(t, m.commands(t, "limit")-limits == 1, "the script of limits counts %v times", m.commands(t, "limit")-limits)
			err := client.Get(ctx, "{never}").Err()
			assert.Require(t, err == redis.Nil, "%v", err)
			assert.Equal(t, m.failures(t, "redis"), map[string]float64{}, "failures, although nothing failed")
		})
	}
}

func TestRedis_CountsAPipelineOnceByItsFirstFailure(t *testing.T) {
	t.Parallel()
	client, m := dialMeasured(t, ephemeral.Redis(t))
	pipe := client.Pipeline()
	pipe.Get(t.Context(), "never")
	pipe.Do(t.Context(), "no such command")
	_ = pipe.Process(t.Context(), redis.NewRawCmd(t.Context(), "no such command either"))
	_, _ = pipe.Exec(t.Context())
	got := m.commands(t, readBatch)
	assert.That(t, got == 1, "a pipeline counts %v times", got)
	assert.Equal(t, m.failures(t, "redis"), map[string]float64{"other": 1}, "result")
}

func TestRedis_CountsFailuresByKind(t *testing.T) {
	t.Parallel()
	shared := assert.Must(url.Parse(ephemeral.Redis(t)))(t)
	closed := assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed.Close()
	for kind, redisURL := range map[string]string{
		"refused": "redis://" + closed.Addr().String(),
		"denied":  "redis://nobody:wrong@" + shared.Host,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			client, m := dialMeasured(t, redisURL)
			assert.Require(t, client.Ping(t.Context()).Err() != nil, "PING succeeds")
			assert.Equal(t, m.failures(t, "redis"), map[string]float64{kind: 1}, "result")
		})
	}
}

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestRedisKind_NamesEachFailure(t *testing.T) {
	t.Parallel()
	for want, errs := range map[string][]error{
		"":              {nil, redis.Nil, context.Canceled, reply("NOSCRIPT No matching script. Please use EVAL.")},
		"timeout":       {context.DeadlineExceeded, &net.OpError{Op: "read", Err: errTimeout{}}},
		"refused":       {fmt.Errorf("dial redis: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})},
		"reset":         {io.EOF, fmt.Errorf("read: %w", syscall.ECONNRESET), net.ErrClosed},
		"readonly":      {reply("READONLY You can't write against a read only replica.")},
		"loading":       {reply("LOADING Redis is loading the dataset in memory")},
		"out_of_memory": {reply("OOM command not allowed when used memory > 'maxmemory'. script: 1, on @user_script:1.")},
		"no_replicas":   {reply("NOREPLICAS Not enough good replicas to write.")},
		"misconf":       {reply("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.")},
		"dns":           {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", Name: "redis", IsTimeout: true}}},
		"cluster_down":  {reply("CLUSTERDOWN The cluster is down")},
		"try_again":     {reply("TRYAGAIN Multiple keys request during rehashing of slot")},
		"moved":         {reply("MOVED 1 127.0.0.1:1"), reply("ASK 1 127.0.0.1:1")},
		"denied":        {reply("NOAUTH Authentication required."), fmt.Errorf("failed to authenticate: %w", reply("WRONGPASS invalid")), reply("NOPERM no")},
		"pool_timeout":  {redis.ErrPoolTimeout, redis.ErrPoolExhausted},
		"other":         {errors.New("what?"), reply("WRONGTYPE Operation"), fmt.Errorf("no sentinel knows the master: %w", redis.Nil)},
	} {
		for _, err := range errs {
			assert.Equal(t, redisKind(err), want, "%v", err)
		}
	}
}

type errTimeout struct{}

func (errTimeout) Error() string   { return "i/o timeout" }
func (errTimeout) Timeout() bool   { return true }
func (errTimeout) Temporary() bool { return true }

func TestPostgres_CountsStatementsByNameAndFailuresByKind(t *testing.T) {
	t.Parallel()
	m := New("test")
	db := ephemeral.OpenPool(t, ephemeral.Postgres(t), connect.PostgresConfig{Tracer: m.PostgresTracer(), MaxConns: 1})
	m.ObservePool("one", db)
	for range 2 {
		assert.Must(db.Exec(t.Context(), "/* nothing */ SELECT"))(t)
	}
	_, err := db.Exec(t.Context(), "/* slow */ SET statement_timeout = 1; SELECT pg_sleep(60)")
	assert.Require(t, err != nil, "a slow statement succeeds")
	conn := assert.Must(db.Acquire(t.Context()))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = db.Acquire(ctx)
	assert.Require(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
	values := m.scrape(t)
	conn.Release()
	assert.Equal(t, m.failures(t, "postgres"), map[string]float64{"timeout": 1, "pool_timeout": 1}, "failures")
	for series, want := range map[string]float64{
		`commerce_postgres_statement_duration_seconds_count{statement="nothing"}`: 2,
		`commerce_postgres_statement_duration_seconds_count{statement="slow"}`:    1,
		`commerce_postgres_pool_connections{pool="one",state="used"}`:             1,
		`commerce_postgres_pool_connections{pool="one",state="idle"}`:             0,
		`commerce_postgres_pool_max_connections{pool="one"}`:                      1,
	} {
		got, ok := values[series]
		assert.That(t, ok && got == want, "%s is %v, want %v", series, got, want)
	}
}

func TestPostgresKind_NamesEachSQLState(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"57014": "timeout", "57P01": "reset", "57P03": "unavailable", "53300": "too_many_connections", "53100": "resources",
		"25006": "read_only", "42501": "denied", "3D000": "denied", "28P01": "denied", "40P01": "conflict", "0A000": "stale_statement", "42601": "other", "": "other",
	} {
		assert.Equal(t, postgresKind(&pgconn.PgError{Code: code}), want, "%q", code)
	}
}
