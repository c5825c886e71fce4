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
	extras     []extra
	RedisURL   string
	DrainDelay time.Duration
}

func newServe() cli.Command {
	c := &serveCommand{extras: extras()}
	var more []cli.Setting
	for _, e := range c.extras {
		more = append(more, e.settings...)
	}
	return cli.Command{
		Name: "serve", Help: "Run the service.", Faults: c.faults, OpenLog: c.openLog, Fail: c.fail, Run: c.run,
		Settings: slices.Concat(c.settings.declare(), []cli.Setting{databaseSetting(&c.Database.URL)}, more, []cli.Setting{
			redisSetting(&c.RedisURL, "redis:// or rediss:// URL. Several hosts or ?cluster=true: a cluster. ?master=NAME: the hosts are sentinels. ca_file=, cert_file= and key_file=: your own certificates."),
			{Name: "DRAIN_DELAY", Default: "2s", Help: fmt.Sprintf("How long to accept requests after SIGTERM while /readyz already fails. At most %s.", maxDrainDelay), Value: cli.Duration(&c.DrainDelay, 0, maxDrainDelay)},
		}),
	}
}

// faults adds what agents need in serve: their endpoints have a fixed URL.
func (c *serveCommand) faults() cli.Faults {
	f := c.settings.faults()
	if c.UCP == "on" && c.PublicURL == "" {
		f.Add("PUBLIC_URL", errors.New("is required with UCP=on"))
	}
	return f
}

func redisSetting(to *string, help string) cli.Setting {
	return cli.Setting{Name: "REDIS_URL", Hint: "URL", Secret: true, Required: true, Help: help, Value: cli.Text(to, checkRedisURL)}
}

func checkRedisURL(url string) error {
	_, err := connect.NewRedisServers(url)
	return err
}

// run serves until ctx ends. Redis and Postgres may be unreachable when it starts.
func (c *serveCommand) run(ctx context.Context, out cli.Output) error {
	a, err := c.begin(ctx, out)
	if err != nil {
		return err
	}
	defer a.close()
	if err := c.useRedis(a, c.RedisURL); err != nil {
		return err
	}
	sentinels, err := connect.RedisSentinels(c.RedisURL)
	if err != nil {
		return &cli.BadSetting{Name: "REDIS_URL", Err: err}
	}
	if sentinels != nil {
		a.Redis.Sentinels = sentinels.Replicas
		a.atEnd(func() { _ = sentinels.Close() })
	}
	db, err := a.pool(ctx, "DATABASE_URL", c.Database.URL, connect.PostgresConfig{ApplicationName: "commerce carts", MaxConns: catalogConns})
	if err != nil {
		return err
	}
	admin := &server.Admin{Metrics: a.Metrics, Started: time.Now(), Dependencies: dependencies(a.Redis.Client, db), Log: a.Log, LosesLog: c.logLines.Losing}
	catalog := openCatalog(db, a.Metrics, a.Log)
	a.Carts.Catalog, a.Carts.Coupons, a.Stores = catalog.products, catalog.products, catalog.stores
	if err := c.reach(ctx, admin, a.Stores, a.Log); err != nil {
		return err
	}
	a.atEnd(background(ctx, admin.Watch))
	subs := &onPostgres{assembly: a, admin: admin, url: c.Database.URL}
	if err := subs.open(ctx, c.extras); err != nil {
		return err
	}
	a.atEnd(catalog.listen(ctx, subs.connect))
	sockets, err := c.listen()
	if err != nil {
		return err
	}
	return c.serve(ctx, sockets, a.Parts, admin, c.DrainDelay, func() {
		a.Log.Info("serving", "addr", sockets.public.Addr().String(), "admin", sockets.admin.Addr().String(), "version", version)
		a.atEnd(c.startChecks(ctx, subs))
	})
}

func dependencies(rdb redis.UniversalClient, db *pgxpool.Pool) map[string]*server.Dependency {
	return map[string]*server.Dependency{
		"redis": {
			Ping: func(ctx context.Context) error { return rdb.Ping(ctx).Err() },
			Refused: func(err error) bool { // the user, the password or the user's permissions: waiting does not help
				return redis.IsAuthError(err) || redis.IsPermissionError(err)
			},
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

// reach pings the dependencies. A wrong setting is an error, an unreachable server is not.
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
