package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/auth/cause"
	"commerce/cmd/internal/cli"
	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
	"commerce/deploy/migrations"
)

// maxDrainDelay leaves enough of the grace period for the last request.
const maxDrainDelay = 4 * time.Second

type serveCommand struct {
	settings
	Database   databaseSettings
	Replicas   replicaSettings
	RedisURL   string
	DrainDelay time.Duration
}

// Settings implements cli.Runnable.
func (c *serveCommand) Settings() []cli.Setting {
	return slices.Concat(c.settings.Settings(), c.Database.settings(true), c.Replicas.settings(), []cli.Setting{
		redisSetting(&c.RedisURL, "redis:// or rediss:// URL. Several hosts or ?cluster=true: a cluster. ?master=NAME: the hosts are sentinels. ca_file=, cert_file= and key_file=: your own certificates."),
		{Name: "DRAIN_DELAY", Default: "2s", Help: fmt.Sprintf("How long to accept requests after SIGTERM while /readyz already fails. At most %s.", maxDrainDelay), Value: cli.Duration(&c.DrainDelay, 0, maxDrainDelay)},
	})
}

// redisSetting declares REDIS_URL.
func redisSetting(to *string, help string) cli.Setting {
	return cli.Setting{Name: "REDIS_URL", Hint: "URL", Secret: true, Required: true, Help: help, Value: cli.Text(to, checkRedisURL)}
}

// checkRedisURL checks a URL without connecting.
func checkRedisURL(url string) error {
	rdb, err := connect.Redis(url)
	if err != nil {
		return err
	}
	return rdb.Close()
}

// refusedByRedis reports whether Redis refused the user, the password or the user's
// permissions. Waiting does not help with any of these.
func refusedByRedis(err error) bool {
	return redis.IsAuthError(err) || redis.IsPermissionError(err)
}

// Run serves until ctx ends. Redis and Postgres may be unreachable when it starts.
func (c *serveCommand) Run(ctx context.Context, out cli.Output) error {
	log := c.logger(out)
	traces, flush, err := c.openTraces(ctx, log)
	if err != nil {
		return err
	}
	defer flush()
	parts, err := c.parts(log)
	if err != nil {
		return err
	}
	parts.Traces = traces
	rdb, err := connect.Redis(c.RedisURL)
	if err != nil {
		return &cli.BadSetting{Name: "REDIS_URL", Err: err}
	}
	defer rdb.Close()
	apiFailures := c.useRedis(&parts, rdb)
	sentinels, err := connect.RedisSentinels(c.RedisURL)
	if err != nil {
		return &cli.BadSetting{Name: "REDIS_URL", Err: err}
	}
	defer sentinels.Close()
	if sentinels != nil {
		parts.RedisSentinels = sentinels.Replicas
	}
	seen := instruments{parts.Metrics, traces}
	db, err := c.Database.pool(ctx, connect.PostgresConfig{ApplicationName: "commerce carts", MaxConns: catalogConns}, seen)
	if err != nil {
		return err
	}
	defer db.Close()
	admin := &server.Admin{Metrics: parts.Metrics, Started: time.Now(), Dependencies: dependencies(rdb, db), Log: log}
	catalog := openCatalog(db, parts.Metrics, log)
	if err := c.reach(ctx, admin, catalog.stores, log); err != nil {
		return err
	}
	defer watch(ctx, admin)()
	parts.Catalog, parts.Coupons, parts.Stores = catalog.products, catalog.products, catalog.stores
	replicas, err := c.Replicas.open(ctx, c.Database, seen, log)
	if err != nil {
		return err
	}
	defer replicas.close()
	admin.Replicas = replicas.states
	subs, err := c.Database.openSubscriptions(ctx, replicas, catalog.stores, apiFailures, seen, log)
	if err != nil {
		return err
	}
	defer subs.close()
	defer catalog.listen(ctx, subs.markTimeline(log))()
	parts.Subscriptions, parts.APITokens, parts.APITokenUsed = subs.source, subs.tokens, subs.used.Record

	stopCheck := func() {}
	defer func() { stopCheck() }()
	return c.run(ctx, parts, admin, c.DrainDelay, func(sockets listeners) {
		log.Info("serving", "addr", sockets.public.Addr().String(), "admin", sockets.admin.Addr().String(), "version", version)
		stopCheck = c.startCheck(ctx, log)
	})
}

func dependencies(rdb redis.UniversalClient, db *pgxpool.Pool) map[string]*server.Dependency {
	return map[string]*server.Dependency{
		"redis": {
			Ping:    func(ctx context.Context) error { return rdb.Ping(ctx).Err() },
			Refused: refusedByRedis,
			PingAll: func(ctx context.Context) error { return pingMasters(ctx, rdb) },
		},
		"postgres": {
			Ping: func(ctx context.Context) error {
				return cause.OfPostgres(db, time.Now(), migrations.Check(ctx, db))
			},
			Parts: []server.Part{
				{Name: "postgres_rights", Is: lacksRights},
				{Name: "postgres_schema", Is: lacksSchema},
			},
			Refused:   refusedByPostgres,
			WatchTime: time.Second, // as a list
		},
	}
}

// pingMasters pings all masters of a cluster. Ping asks only one of them.
func pingMasters(ctx context.Context, rdb redis.UniversalClient) error {
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
			return master.Ping(ctx).Err()
		})
	}
	return rdb.Ping(ctx).Err()
}

// watch checks the dependencies in the background until ctx ends or the returned function is
// called, which waits for the end of the checks.
func watch(ctx context.Context, admin *server.Admin) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		admin.Watch(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// reach pings the dependencies. It fails if a setting is wrong, but not if a dependency
// is unreachable.
func (c *serveCommand) reach(ctx context.Context, admin *server.Admin, stores auth.StoreDirectory, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, startReach)
	defer cancel()
	failed := admin.Reach(ctx)
	if err := failed["postgres_schema"]; err != nil {
		return &cli.BadSetting{Name: "DATABASE_URL", Err: err}
	}
	for name, err := range failed {
		log.Warn("starting without "+name, "err", err)
	}
	if c.DefaultStore == 0 || failed["postgres"] != nil {
		return nil
	}
	if _, err := stores.ByID(ctx, c.DefaultStore); errors.Is(err, auth.ErrNoStore) {
		return &cli.BadSetting{Name: "DEFAULT_STORE", Err: fmt.Errorf("there is no store %d", c.DefaultStore)}
	}
	return nil
}

// startReach is how long the start waits for Redis and Postgres to respond.
const startReach = 2 * time.Second
