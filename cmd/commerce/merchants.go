package main

import (
	"context"
	"crypto/rand"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth"
	"commerce/deploy/connect"
	"commerce/subscriptions"
)

// merchants are what stores' own programs read, and the tokens they do it with.
// Lists have a pool of their own, so that carts do not wait for them. Token checks have
// a small one, so that one store's lists do not keep another store out.
type merchants struct {
	source *subscriptions.Postgres
	tokens *auth.APITokens
	used   *auth.LastUsed

	pools   []*pgxpool.Pool
	stop    context.CancelFunc
	stopped chan struct{}
}

// tokenChecks is how many tokens are looked up at the same time. A look-up takes a
// fraction of a millisecond, and requests with one token share it.
const tokenChecks = 4

// openMerchants opens the pools and starts to record when tokens are used, until
// close.
func (d databaseSettings) openMerchants(ctx context.Context, stores auth.StoreDirectory, log *slog.Logger) (*merchants, error) {
	var pools []*pgxpool.Pool
	for _, config := range []connect.PostgresConfig{
		{ApplicationName: "commerce subscriptions", Edit: planOnce},
		{ApplicationName: "commerce tokens", MaxConns: tokenChecks},
		{ApplicationName: "commerce last used", Writable: true, MaxConns: 1},
	} {
		pool, err := connect.Postgres(ctx, d.URL, config)
		if err != nil {
			closeAll(pools)
			return nil, &badSetting{"DATABASE_URL", err}
		}
		pools = append(pools, pool)
	}
	lists, tokens, writer := pools[0], pools[1], pools[2]
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // requests outlive ctx
	m := &merchants{
		source: subscriptions.NewPostgres(subscriptions.PostgresConfig{Pool: lists, Log: log}),
		tokens: auth.NewAPITokens(auth.APITokensConfig{Source: auth.NewPostgresAPITokens(tokens, rand.Reader), Stores: stores}),
		used:   auth.NewLastUsed(auth.LastUsedConfig{Pool: writer, Log: log}),
		pools:  pools, stop: stop, stopped: make(chan struct{}),
	}
	go func() {
		defer close(m.stopped)
		m.used.Run(ctx)
	}()
	return m, nil
}

// planOnce makes Postgres plan each statement once a connection. By itself it would
// plan the list's anew for every request, which takes three times as long as to run
// them, since it cannot know that a page is short; the plans are the same.
func planOnce(pool *pgxpool.Config) {
	pool.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
}

// close writes what is still to be recorded.
func (m *merchants) close() {
	m.stop()
	<-m.stopped
	closeAll(m.pools)
}

func closeAll(pools []*pgxpool.Pool) {
	for _, pool := range pools {
		pool.Close()
	}
}
