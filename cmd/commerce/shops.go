package main

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth"
	"commerce/cart/catalog"
	"commerce/deploy/connect"
)

// shopLoads is how many questions about products, coupons and stores Postgres is
// asked at the same time, at most.
const shopLoads = 16

// shops are the stores and what they sell, read from Postgres and kept at hand.
type shops struct {
	stores    *auth.PostgresStores
	catalogue *catalog.Cache
	listener  connect.Listener
}

func openShops(db *pgxpool.Pool, log *slog.Logger) *shops {
	s := &shops{
		stores:    auth.NewPostgresStores(auth.PostgresStoresConfig{DB: db, Log: log}),
		catalogue: catalog.NewCache(catalog.CacheConfig{Source: catalog.NewPostgres(db), Log: log}),
	}
	s.listener = connect.Listener{
		Config: db.Config().ConnConfig, Channel: "commerce", Log: log,
		Heard: func(message string) {
			s.stores.Told(message)
			s.catalogue.Told(message)
		},
		Missed: func() {
			s.stores.Missed()
			s.catalogue.Missed()
		},
	}
	return s
}

// keepUp hears of changes until the context ends or the returned function, which
// waits for that, is called.
func (s *shops) keepUp(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.listener.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}
