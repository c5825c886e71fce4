package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"commerce/auth/limit"
	"commerce/auth/sealed"
	"commerce/cart/live"
	"commerce/cart/service"
	"commerce/cart/share"
	"commerce/cmd/internal/cli"
	"commerce/cmd/internal/pages"
	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
	"commerce/cmd/internal/tracing"
	"commerce/deploy/connect"
)

// assembly collects the parts of the service, and what must be closed at the end. Demo and serve
// share the steps here, and differ in where carts, the catalog and subscriptions are.
type assembly struct {
	server.Parts
	apiFailures *limit.Quota // invalid API tokens of one client; nil: no limit
	closers     []func()
	late        chan struct{} // closed when close must not wait for them any longer
}

// begin returns an assembly with the parts that depend on the settings alone. It opens the log, and
// begins to record traces if the environment asks for them. The caller calls close.
func (s *settings) begin(ctx context.Context, out cli.Output) (*assembly, error) {
	a := &assembly{Parts: s.Parts, late: make(chan struct{})}
	context.AfterFunc(ctx, func() { time.AfterFunc(gracePeriod+flushPeriod/2, func() { close(a.late) }) })
	a.Log, a.Metrics = s.logger(out), telemetry.New(version)
	a.Metrics.ObserveLog(s.logLines.Lost)
	a.BasePath = strings.TrimSuffix(s.BasePath, "/")
	a.UCP = s.UCP == "on"
	if s.Playground == "on" {
		a.Playground = &pages.Playground{}
	}
	var err error
	if tracing.On(os.Getenv) {
		if a.Traces, err = tracing.New(ctx, tracing.Config{Version: version, Log: a.Log}); err != nil {
			return nil, fmt.Errorf("start traces: %w", err)
		}
		s.JWT.Keys.Propagate = a.Traces.Propagate // to the issuer of tokens
	}
	s.JWT.Keys.Reachable = func(up bool) { a.Metrics.DependencyUp("issuer", up) }
	if a.JWT, err = s.JWT.verifier(); err != nil {
		a.close()
		return nil, err
	}
	if a.Carts.Keys, err = sealed.New(s.HandoverKey, s.Previous); err != nil {
		a.close()
		return nil, &cli.BadSetting{Name: "HANDOVER_KEY", Err: err}
	}
	return a, nil
}

const (
	// flushPeriod is how long the process waits at its end until the collector has the last spans.
	// With gracePeriod and half of it, it must stay below 10 s.
	flushPeriod = 500 * time.Millisecond

	// closePeriod is how long close waits for everything else, such as the last uses of API tokens.
	closePeriod = 3 * time.Second
)

// atEnd makes close call a function, before those of earlier calls.
func (a *assembly) atEnd(close func()) { a.closers = append(a.closers, close) }

// close ends and closes everything, the latest first, and traces last. It leaves to the end of the process
// what takes too long: a pool waits up to 15 s for statements that Postgres does not end.
func (a *assembly) close() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, close := range slices.Backward(a.closers) {
			close()
		}
	}()
	select {
	case <-ended:
	case <-time.After(closePeriod):
	case <-a.late:
	}
	if a.Traces == nil {
		return
	}
	last, cancel := context.WithTimeout(context.Background(), flushPeriod)
	defer cancel()
	if err := a.Traces.Close(last); err != nil {
		a.Log.WarnContext(last, "the last traces were not sent in time", "err", err)
	}
}

// background runs work until ctx ends or stop is called, which waits for the end of work.
func background(ctx context.Context, work func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// failuresPerMinute is the number of invalid tokens that a client may send per minute. It is high,
// because many shops and shoppers may share one address. It only bounds the work for attempts: no
// rate is high enough to guess tokens.
const failuresPerMinute = 300

// useRedis opens a Redis client, with its metrics and traces. Unless limits are turned off, it also
// adds the limits that all instances count together.
func (s *settings) useRedis(a *assembly, url string, edits ...func(*redis.UniversalOptions)) error {
	rdb, err := connect.Redis(url, edits...)
	if err != nil {
		return &cli.BadSetting{Name: "REDIS_URL", Err: err}
	}
	a.atEnd(func() { _ = rdb.Close() })
	a.Redis.Client = rdb
	a.Metrics.ObserveRedis(rdb)
	if !s.RateLimit {
		return nil
	}
	a.Live.ClientStreams = live.ClientStreams
	a.Carts.Creation = limit.NewQuota(limit.Config{Name: "create", Rates: s.CreateLimit, Redis: rdb, Log: a.Log})
	if s.CreateLimit != nil {
		a.Carts.Text = service.NewTextQuota(limit.Config{Redis: rdb, Log: a.Log}, a.Carts.Limits)
	}
	a.Carts.Guesses = service.NewGuesses(limit.Config{Redis: rdb, Log: a.Log})
	a.WrongCodes = share.NewLimit(limit.Config{Redis: rdb, Log: a.Log})
	// Access tokens and API tokens have their own limit, so that a flood of one kind does not disturb
	// programs that send the other from the same address.
	failures := []limit.Rate{{Uses: failuresPerMinute, Per: time.Minute}}
	a.Failures = limit.NewQuota(limit.Config{Name: "credentials", Rates: failures, Redis: rdb, Log: a.Log})
	a.apiFailures = limit.NewQuota(limit.Config{Name: "api_tokens", Rates: failures, Redis: rdb, Log: a.Log})
	return nil
}

// pool opens a pool for the Postgres of a setting, with metrics and traces. Its name in metrics is the
// application name without "commerce", with the host if it uses only one. It does not connect.
func (a *assembly) pool(ctx context.Context, setting, url string, config connect.PostgresConfig) (*pgxpool.Pool, error) {
	config.Tracer = a.Metrics.PostgresTracer()
	pool, err := connect.Postgres(ctx, url, config)
	if err != nil {
		return nil, &cli.BadSetting{Name: setting, Err: err}
	}
	a.atEnd(pool.Close)
	name := strings.ReplaceAll(strings.TrimPrefix(config.ApplicationName, "commerce "), " ", "_")
	if config.Only != "" {
		name += "@" + config.Only
	}
	a.Metrics.ObservePool(name, pool)
	return pool, nil
}
