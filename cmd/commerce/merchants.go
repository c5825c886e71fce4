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
// They have a pool of their own, so that however busy they are the carts are not.
type merchants struct {
	source *subscriptions.Postgres
	tokens *auth.APITokens
	used   *auth.LastUsed

	db, writer *pgxpool.Pool
	stop       context.CancelFunc
	stopped    chan struct{}
}

// openMerchants opens the pools and starts to record when tokens are used, until
// close.
func (d databaseSettings) openMerchants(ctx context.Context, stores auth.StoreDirectory, log *slog.Logger) (*merchants, error) {
	db, err := connect.Postgres(ctx, d.URL, connect.PostgresConfig{ApplicationName: "commerce subscriptions", Edit: planOnce})
	if err != nil {
		return nil, &badSetting{"DATABASE_URL", err}
	}
	writer, err := connect.Postgres(ctx, d.URL, connect.PostgresConfig{
		ApplicationName: "commerce last used", Writable: true, MaxConns: 1,
	})
	if err != nil {
		db.Close()
		return nil, &badSetting{"DATABASE_URL", err}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // requests outlive ctx
	m := &merchants{
		source: subscriptions.NewPostgres(subscriptions.PostgresConfig{Pool: db}),
		tokens: auth.NewAPITokens(auth.APITokensConfig{Source: auth.NewPostgresAPITokens(db, rand.Reader), Stores: stores}),
		used:   auth.NewLastUsed(auth.LastUsedConfig{Pool: writer, Log: log}),
		db:     db, writer: writer, stop: stop, stopped: make(chan struct{}),
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
	m.writer.Close()
	m.db.Close()
}
