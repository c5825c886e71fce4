package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth"
	"commerce/auth/cause"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/cmd/internal/telemetry"
	"commerce/deploy/connect"
)

// catalogConns is the maximum number of concurrent queries for products, coupons and stores.
const catalogConns = 16

type storeCatalog struct {
	stores   *auth.PostgresStores
	products *catalog.Cache // and coupons
	db       *pgxpool.Pool
	log      *slog.Logger

	reported map[string]time.Time // when an unknown currency was last logged; only the listener uses it
}

func openCatalog(db *pgxpool.Pool, metrics *telemetry.Metrics, log *slog.Logger) *storeCatalog {
	storeShown := func(delay time.Duration) { metrics.CatalogChangeShown("stores", delay) }
	s := &storeCatalog{
		stores:   auth.NewPostgresStores(auth.PostgresStoresConfig{DB: db, KnownCurrency: money.Known, Log: log, Shown: storeShown}),
		products: catalog.NewCache(catalog.CacheConfig{Source: catalog.NewPostgres(db), Server: cause.Postgres(db.Config().ConnConfig), Log: log, Shown: metrics.CatalogChangeShown}),
		db:       db,
		log:      log,
		reported: map[string]time.Time{},
	}
	metrics.ObserveCatalog("stores", s.stores.Stats)
	for of, stats := range s.products.Stats() {
		metrics.ObserveCatalog(of, stats)
	}
	return s
}

// listen invalidates what changes in the database until ctx ends or stop is called, which waits for
// the end of the listener. It calls connected each time the listener connects.
func (s *storeCatalog) listen(ctx context.Context, connected func(context.Context)) (stop func()) {
	return background(ctx, func(ctx context.Context) {
		listener := connect.Listener{
			Config: s.db.Config().ConnConfig, Channel: "commerce", Log: s.log,
			Heard: func(message string) {
				s.stores.Invalidate(message)
				s.products.Invalidate(message)
				if message == "store" {
					s.reportUnknownCurrencies(ctx)
				}
			},
			Missed: func() {
				s.stores.InvalidateAll()
				s.products.InvalidateAll()
				s.reportUnknownCurrencies(ctx)
				connected(ctx)
			},
		}
		listener.Run(ctx)
	})
}

// reportUnknownCurrencies logs an error for each store currency that this release does not know,
// before the first call to such a store gets a 503, at most once a minute.
func (s *storeCatalog) reportUnknownCurrencies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	rows, _ := s.db.Query(ctx, "/* currencies */ SELECT currency, count(*), min(id) FROM stores GROUP BY currency ORDER BY currency")
	var currency string
	var stores, first int64
	// The caches log that the database does not respond, so the error is not logged again.
	_, _ = pgx.ForEachRow(rows, []any{&currency, &stores, &first}, func() error {
		if !money.Known(currency) && time.Since(s.reported[currency]) >= time.Minute {
			s.reported[currency] = time.Now()
			s.log.ErrorContext(ctx, "unknown currency: its stores are not served", "currency", currency, "stores", stores, "first_store", first)
		}
		return nil
	})
}
