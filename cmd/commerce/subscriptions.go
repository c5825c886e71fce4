package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth"
	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/subscriptions"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/replicas"
)

// A summary reads all rows of a store, so summaries have few connections and more time than lists. One of
// the connections is for metrics, which take longer.
const (
	summaryConns   = 3
	summaryTimeout = 10 * time.Second
)

// tokenConns is the maximum number of concurrent token look-ups, which take less than a millisecond.
const tokenConns = 4

// openSubscriptions adds what reads subscriptions, verifies stores' API tokens and records when tokens
// are used. Each has its own pool: carts do not wait for lists, lists do not wait for summaries, and
// the lists of one store do not block the token checks of others.
func (d databaseSettings) openSubscriptions(ctx context.Context, a *assembly, replicas *replicas.Set) (*postgres.Source, error) {
	var lists, summaries, tokens, writer *pgxpool.Pool
	for pool, config := range map[**pgxpool.Pool]connect.PostgresConfig{
		&lists:     listPool(""),
		&summaries: summaryPool(""),
		&tokens:    {ApplicationName: "commerce tokens", MaxConns: tokenConns},
		&writer:    {ApplicationName: "commerce last used", Writable: true, MaxConns: 1},
	} {
		var err error
		if *pool, err = a.pool(ctx, "DATABASE_URL", d.URL, config); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // requests in flight outlive ctx
	source := postgres.New(postgres.Config{
		Pool: lists, SummaryPool: summaries, Replicas: replicas, Served: a.Metrics.SubscriptionsRead, Base: ctx, Log: a.Log,
	})
	used := auth.NewLastUsed(auth.LastUsedConfig{Pool: writer, Log: a.Log})
	a.atEnd(stop)
	a.atEnd(background(ctx, used.Run)) // records the last uses at its end
	a.Subscriptions, a.APITokenUsed = source, used.Record
	a.APITokens = auth.NewAPITokens(auth.APITokensConfig{
		Source: auth.NewPostgresAPITokens(tokens), Stores: a.Stores, Failures: a.apiFailures,
	})
	return source, nil
}

// listPool configures the pool of lists and changes, on host or, if that is "", on the URL's. Postgres plans
// each prepared statement once per connection. By default it would plan the list for every request, which
// takes three times as long as running it, for the same plan. Citus needs another mode, in DATABASE_URL: it
// cannot run such plans.
func listPool(only string) connect.PostgresConfig {
	return connect.PostgresConfig{
		ApplicationName: "commerce subscriptions", Only: only, Settings: map[string]string{"plan_cache_mode": "force_generic_plan"},
	}
}

// summaryPool leaves the database's other cores to lists. A summary of 100,000 rows takes as long with parallel
// workers as without.
func summaryPool(only string) connect.PostgresConfig {
	return connect.PostgresConfig{
		ApplicationName: "commerce summaries", Only: only, MaxConns: summaryConns, StatementTimeout: summaryTimeout,
		Settings: map[string]string{"max_parallel_workers_per_gather": "0"},
	}
}

// pruneTimeout bounds each of the short transactions.
const pruneTimeout = time.Minute

func newSubscriptions() cli.Command {
	return cli.Command{Name: "subscriptions", Help: "Delete records of subscriptions.", Commands: []cli.Command{newPrune()}}
}

// newPrune returns the command that deletes old deletions and folds old histories. It prints how
// many, also before an error.
func newPrune() cli.Command {
	return onMigrated("prune", "Delete old records of deletions, and shorten histories to three years. Run it daily.",
		connect.PostgresConfig{
			Writable: true, ApplicationName: "commerce subscriptions prune", MaxConns: 1, StatementTimeout: pruneTimeout,
		},
		func(ctx context.Context, db *pgxpool.Pool, out cli.Output) error {
			const day = 24 * time.Hour
			end := startWaiting(out.Errors, "deleting old records")
			deleted, err := postgres.Prune(ctx, db)
			folded, foldErr := postgres.Fold(ctx, db)
			end()
			if errors.Is(err, subscriptions.ErrNoChanges) {
				return errors.New("nothing to prune: the database is sharded by store, so it keeps no records of deletions")
			}
			fmt.Fprintf(out, "deleted the records of %d deletions older than %d days\n", deleted, subscriptions.KeepDeletions/day)
			fmt.Fprintf(out, "shortened the histories of %d subscriptions to %d days\n", folded, subscriptions.KeepStates/day)
			return errors.Join(err, foldErr)
		})
}

type replicaSettings struct {
	URL   string
	Hosts []string // of URL
}

// maxLag is the maximum lag of a replica that is read.
const maxLag = 5 * time.Second

func (r *replicaSettings) setting() cli.Setting {
	return cli.Setting{
		Name: "DATABASE_REPLICA_URL", Hint: "URL", Secret: true, Value: cli.Text(&r.URL, r.readHosts),
		Help: fmt.Sprintf("Postgres URL whose hosts are the replicas to read subscriptions from, while they lag at most %s. Default: none; all reads use DATABASE_URL.", maxLag),
	}
}

func (r *replicaSettings) readHosts(url string) (err error) {
	r.Hosts, err = connect.PostgresHosts(url)
	return err
}

// open opens the pools of replicas, which may be unreachable, and starts their checks.
func (r replicaSettings) open(ctx context.Context, a *assembly, primary databaseSettings) (*replicas.Set, error) {
	if r.URL == "" {
		return nil, nil
	}
	config := replicas.Config{MaxLag: maxLag, Log: a.Log, Observe: a.Metrics.ReplicaChecked}
	var err error
	if config.Primary, err = a.pool(ctx, "DATABASE_URL", primary.URL, checkPool("")); err != nil {
		return nil, err
	}
	for _, host := range r.Hosts {
		server := replicas.Server{Name: host}
		for pool, config := range map[**pgxpool.Pool]connect.PostgresConfig{
			&server.Pool: listPool(host), &server.SummaryPool: summaryPool(host), &server.Checks: checkPool(host),
		} {
			if *pool, err = a.pool(ctx, "DATABASE_REPLICA_URL", r.URL, config); err != nil {
				return nil, err
			}
		}
		config.Servers = append(config.Servers, server)
	}
	set := replicas.New(config)
	a.atEnd(background(context.WithoutCancel(ctx), set.Run)) // requests in flight outlive ctx
	return set, nil
}

func checkPool(only string) connect.PostgresConfig {
	return connect.PostgresConfig{ApplicationName: "commerce replica checks", Only: only, MaxConns: 1}
}
