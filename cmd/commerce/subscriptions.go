package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth"
	"commerce/auth/limit"
	"commerce/deploy/connect"
	"commerce/subscriptions/postgres"
)

// subscriptionReader reads subscriptions, verifies stores' API tokens and records when
// tokens are used. Lists have their own pool, so that carts do not wait for them.
// Summaries have their own, so that lists do not wait for summaries. Token checks have
// their own small pool, so that the lists of one store do not block the token checks of
// others.
type subscriptionReader struct {
	source *postgres.Source
	tokens *auth.APITokens
	used   *auth.LastUsed

	pools   []*pgxpool.Pool
	stop    context.CancelFunc
	stopped chan struct{}
}

// summaryConns is the maximum number of concurrent summaries. Each reads all rows of a
// store, so they have their own connections and more time than lists.
const (
	summaryConns   = 2
	summaryTimeout = 10 * time.Second
)

// tokenConns is the maximum number of concurrent token look-ups. A look-up takes a
// fraction of a millisecond, and concurrent requests with the same token share it.
const tokenConns = 4

// openSubscriptions opens the pools and starts to record token use. The caller calls
// close, and only then closes the replicas.
func (d databaseSettings) openSubscriptions(ctx context.Context, replicas *replicaReader, stores auth.StoreDirectory, failures *limit.Quota, seen instruments, log *slog.Logger) (*subscriptionReader, error) {
	var pools []*pgxpool.Pool
	for _, config := range []connect.PostgresConfig{
		listPool(""),
		summaryPool(""),
		{ApplicationName: "commerce tokens", MaxConns: tokenConns},
		{ApplicationName: "commerce last used", Writable: true, MaxConns: 1},
	} {
		pool, err := d.pool(ctx, config, seen)
		if err != nil {
			closeAll(pools)
			return nil, err
		}
		pools = append(pools, pool)
	}
	lists, summaries, tokens, writer := pools[0], pools[1], pools[2], pools[3]
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // requests in flight outlive ctx
	r := &subscriptionReader{
		source: postgres.New(postgres.Config{
			Pool: lists, SummaryPool: summaries, Replicas: replicas.set, Served: seen.metrics.SubscriptionsRead, Base: ctx, Log: log,
		}),
		tokens: auth.NewAPITokens(auth.APITokensConfig{
			Source: auth.NewPostgresAPITokens(tokens, rand.Reader), Stores: stores, Failures: failures,
		}),
		used:  auth.NewLastUsed(auth.LastUsedConfig{Pool: writer, Log: log}),
		pools: pools, stop: stop, stopped: make(chan struct{}),
	}
	go func() {
		defer close(r.stopped)
		r.used.Run(ctx)
	}()
	return r, nil
}

// markTimeline returns a function that records the timeline of the primary's log.
func (r *subscriptionReader) markTimeline(log *slog.Logger) func(context.Context) {
	return func(ctx context.Context) {
		if err := r.source.MarkTimeline(ctx); err != nil {
			log.WarnContext(ctx, "cannot record the timeline of Postgres: the next request for changes tries again", "err", err)
		}
	}
}

// listPool configures the pool of lists and changes, on the only host to use or, if that is "",
// on that of the URL.
func listPool(only string) connect.PostgresConfig {
	return connect.PostgresConfig{ApplicationName: "commerce subscriptions", Only: only, Edit: planOnce}
}

// summaryPool is listPool for summaries.
func summaryPool(only string) connect.PostgresConfig {
	return connect.PostgresConfig{
		ApplicationName: "commerce summaries", Only: only,
		MaxConns: summaryConns, StatementTimeout: summaryTimeout, Edit: onOneCore,
	}
}

// planOnce makes Postgres plan each prepared statement once per connection. By default
// it would plan the list for every request, because it cannot know that a page is
// short. Planning takes three times as long as running the list, and the plans are the
// same.
//
// A mode in DATABASE_URL takes precedence. Citus needs one: it cannot run such plans.
func planOnce(pool *pgxpool.Config) {
	params := pool.ConnConfig.RuntimeParams
	if params["plan_cache_mode"] == "" {
		params["plan_cache_mode"] = "force_generic_plan"
	}
}

// onOneCore leaves the database's other cores to lists. A summary of 100,000 rows takes as
// long with parallel workers as without.
func onOneCore(pool *pgxpool.Config) {
	pool.ConnConfig.RuntimeParams["max_parallel_workers_per_gather"] = "0"
}

// close records the last token uses and closes the pools.
func (r *subscriptionReader) close() {
	r.stop()
	<-r.stopped
	closeAll(r.pools)
}

func closeAll(pools []*pgxpool.Pool) {
	for _, pool := range pools {
		pool.Close()
	}
}
