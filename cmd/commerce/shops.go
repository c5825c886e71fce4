package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/deploy/connect"
)

// shopLoads is how many questions about products, coupons and stores Postgres is
// asked at the same time, at most.
const shopLoads = 16

// shops are the stores and what they sell, read from Postgres and kept at hand.
type shops struct {
	stores    *auth.PostgresStores
	catalogue *catalog.Cache
	db        *pgxpool.Pool
	log       *slog.Logger
}

func openShops(db *pgxpool.Pool, log *slog.Logger) *shops {
	return &shops{
		stores:    auth.NewPostgresStores(auth.PostgresStoresConfig{DB: db, KnownCurrency: money.Known, Log: log}),
		catalogue: catalog.NewCache(catalog.CacheConfig{Source: catalog.NewPostgres(db), Log: log}),
		db:        db,
		log:       log,
	}
}

// keepUp hears of changes until the context ends or the returned function, which
// waits for that, is called.
func (s *shops) keepUp(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	listener := connect.Listener{
		Config: s.db.Config().ConnConfig, Channel: "commerce", Log: s.log,
		Heard: func(message string) {
			s.stores.Invalidate(message)
			s.catalogue.Invalidate(message)
			if message == "store" {
				s.reportUnknownCurrencies(ctx)
			}
		},
		Missed: func() {
			s.stores.InvalidateAll()
			s.catalogue.InvalidateAll()
			s.reportUnknownCurrencies(ctx)
		},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		listener.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// reportUnknownCurrencies logs an error for each currency of a store that this
// release does not know. These stores get 503 for every call, and an operator
// should not have to wait for the first of them.
func (s *shops) reportUnknownCurrencies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	used, err := currenciesInUse(ctx, s.db)
	if err != nil {
		return // the caches report a database that does not answer
	}
	for _, c := range used {
		if _, known := money.Digits(c.Code); !known {
			s.log.ErrorContext(ctx, "unknown currency: its stores are not served", "currency", c.Code, "stores", c.Stores, "first_store", c.FirstStore)
		}
	}
}

// currencyInUse is a currency and the stores that have it.
type currencyInUse struct {
	Code               string
	Stores, FirstStore int64
}

func currenciesInUse(ctx context.Context, db *pgxpool.Pool) ([]currencyInUse, error) {
	rows, err := db.Query(ctx, "SELECT currency, count(*), min(id) FROM stores GROUP BY currency ORDER BY currency")
	if err != nil {
		return nil, fmt.Errorf("select currencies: %w", err)
	}
	used, err := pgx.CollectRows(rows, pgx.RowToStructByPos[currencyInUse])
	if err != nil {
		return nil, fmt.Errorf("select currencies: %w", err)
	}
	return used, nil
}
