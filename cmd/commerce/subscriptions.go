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
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/recorded"
)

// tokenConns is the maximum number of concurrent token look-ups, which take less than a millisecond.
const tokenConns = 4

// open adds what reads subscriptions, verifies stores' API tokens and records when tokens are used. Each has
// its own pool: carts do not wait for lists, and the lists of one store do not block the token checks of
// others.
func (s *onPostgres) open(ctx context.Context, extras []extra) error {
	for _, e := range extras {
		if e.replicate != nil {
			if err := e.replicate(ctx, s); err != nil {
				return err
			}
		}
	}
	lists, err := s.servers(ctx, listPool)
	if err != nil {
		return err
	}
	var tokens, writer *pgxpool.Pool
	for pool, config := range map[**pgxpool.Pool]connect.PostgresConfig{
		&tokens: {ApplicationName: "commerce tokens", MaxConns: tokenConns},
		&writer: {ApplicationName: "commerce last used", Writable: true, MaxConns: 1},
	} {
		if *pool, err = s.pool(ctx, "DATABASE_URL", s.url, config); err != nil {
			return err
		}
	}
	used := auth.NewLastUsed(auth.LastUsedConfig{Pool: writer, Log: s.Log})
	s.atEnd(background(context.WithoutCancel(ctx), used.Run)) // records the last uses at its end
	s.rows = postgres.New(lists, s.Log)
	s.Subscriptions, s.APITokenUsed = s.rows, used.Record
	s.APITokens = auth.NewAPITokens(auth.APITokensConfig{
		Source: auth.NewPostgresAPITokens(tokens), Stores: s.Stores, Failures: s.apiFailures,
	})
	for _, e := range extras {
		if e.serve != nil {
			if err := e.serve(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// connect is called when a connection to the primary begins.
func (s *onPostgres) connect(ctx context.Context) {
	for _, connected := range s.connected {
		connected(ctx)
	}
}

// listPool configures the pool of lists and changes. Postgres plans
// each prepared statement once per connection. By default it would plan the list for every request, which
// takes three times as long as running it, for the same plan. Citus needs another mode, in DATABASE_URL: it
// cannot run such plans.
func listPool(host string) connect.PostgresConfig {
	return connect.PostgresConfig{
		ApplicationName: "commerce subscriptions", Only: host, Settings: map[string]string{"plan_cache_mode": "force_generic_plan"},
	}
}

// pruneTimeout bounds each of the short transactions.
const pruneTimeout = time.Minute

func newSubscriptions() cli.Command {
	return cli.Command{Name: "subscriptions", Help: "Delete records of subscriptions.", Commands: []cli.Command{newPrune()}}
}

// newPrune returns the command that deletes old records. It prints which, also before an error.
func newPrune() cli.Command {
	return onMigrated("prune", "Delete old records of deletions, and shorten histories to three years. Run it daily.",
		connect.PostgresConfig{
			Writable: true, ApplicationName: "commerce subscriptions prune", MaxConns: 1, StatementTimeout: pruneTimeout,
		},
		func(ctx context.Context, db *pgxpool.Pool, out cli.Output) error {
			var done []string
			var failed error
			end := startWaiting(out.Errors, "deleting old records")
			for _, e := range extras() {
				if e.prune != nil {
					what, err := e.prune(ctx, db)
					done, failed = append(done, what), errors.Join(failed, err)
				}
			}
			end()
			if errors.Is(failed, recorded.ErrNone) {
				return errors.New("nothing to prune: the database is sharded by store, so it keeps no records of deletions")
			}
			for _, what := range done {
				fmt.Fprintln(out, what)
			}
			return failed
		})
}
