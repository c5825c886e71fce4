package main

import (
	"context"
	"errors"
	"fmt"

	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
)

type serveCommand struct {
	settings `embed:""`
	Database databaseSettings `embed:""`
	RedisURL string           `name:"redis-url" env:"REDIS_URL" secret:"" help:"redis:// or rediss://; several hosts or ?cluster=true for a cluster, ?master=NAME for sentinels; ca_file, cert_file and key_file for certificates of your own."`
}

// Run serves until it is told to end.
func (c *serveCommand) Run(ctx context.Context, out output) error {
	log, err := c.logger(out)
	if err != nil {
		return err
	}
	if c.RedisURL == "" {
		return &badSetting{"REDIS_URL", errors.New("is required")}
	}
	parts, err := c.parts(log)
	if err != nil {
		return err
	}
	if parts.JWT, err = c.JWT.verifier(); err != nil {
		return err
	}
	rdb, err := connect.Redis(c.RedisURL)
	if err != nil {
		return &badSetting{"REDIS_URL", err}
	}
	defer rdb.Close()
	parts.Redis = rdb
	db, err := c.Database.openMigrated(ctx, connect.PostgresConfig{ApplicationName: "commerce carts", MaxConns: shopLoads})
	if err != nil {
		return err
	}
	defer db.Close()
	shops := openShops(db, log)
	defer shops.keepUp(ctx)()
	parts.Catalog, parts.Coupons, parts.Stores = shops.catalogue, shops.catalogue, shops.stores
	merchants, err := c.Database.openMerchants(ctx, shops.stores, log)
	if err != nil {
		return err
	}
	defer merchants.close()
	parts.Subscriptions, parts.APITokens, parts.APITokenUsed = merchants.source, merchants.tokens, merchants.used.Record

	handler, err := server.Assemble(parts)
	if err != nil {
		return fmt.Errorf("assemble: %w", err)
	}
	sockets, err := c.listen()
	if err != nil {
		return err
	}
	log.Info("serving", "addr", sockets.public.Addr().String(), "admin", sockets.admin.Addr().String(), "version", version)
	admin := &server.Admin{
		Metrics: parts.Metrics, Version: version,
		Checks: map[string]func(context.Context) error{
			"redis": func(ctx context.Context) error { return rdb.Ping(ctx).Err() },
		},
		Watched: map[string]func(context.Context) error{"postgres": db.Ping},
	}
	return sockets.serve(ctx, handler, admin, log)
}
