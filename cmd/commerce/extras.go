package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/cmd/internal/cli"
	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
	"commerce/subscriptions"
	"commerce/subscriptions/history"
	"commerce/subscriptions/postgres"
)

// extras are what the program has beside the list and the single subscription. To leave one out, remove its
// line here, and the file that it is in.
func extras() []extra {
	return []extra{
		withReplicas(),
		withFeed(),
		withHistory(),
		withFigures(),
	}
}

// extra is what a package adds to the program. Each function may be nil.
type extra struct {
	settings []cli.Setting // of serve

	// replicate adds replicas to read from. It is called before any is read.
	replicate func(context.Context, *onPostgres) error

	serve func(context.Context, *onPostgres) error // adds calls that read Postgres
	demo  func(*inMemory)                          // adds calls that read memory

	// prune deletes old records. It says which, also before an error.
	prune func(context.Context, *pgxpool.Pool) (done string, err error)
}

// onPostgres is an assembly that reads subscriptions from Postgres.
type onPostgres struct {
	*assembly
	admin *server.Admin
	url   string // DATABASE_URL

	replicaURL string                                                    // DATABASE_REPLICA_URL; "" for none
	fit        func(store int64) []int                                   // which replicas to read; nil: none
	timeline   func() int64                                              // the latest of the primary's log that is known, 0 for none; nil: there are no replicas
	replicas   func(context.Context, poolOn) ([]postgres.Replica, error) // opens pools; nil: there are none

	rows      *postgres.Source
	connected []func(context.Context) // called when a connection to the primary begins
}

// poolOn configures the pool of one host, or with "" that of a URL.
type poolOn func(host string) connect.PostgresConfig

// servers opens pools on the primary and its replicas.
func (s *onPostgres) servers(ctx context.Context, on poolOn) (*postgres.Servers, error) {
	c := postgres.Config{Served: s.Metrics.SubscriptionsRead, Fit: s.fit}
	var err error
	if c.Pool, err = s.pool(ctx, "DATABASE_URL", s.url, on("")); err != nil {
		return nil, err
	}
	if s.replicas != nil {
		if c.Replicas, err = s.replicas(ctx, on); err != nil {
			return nil, err
		}
	}
	return postgres.NewServers(c), nil
}

// inMemory is an assembly with subscriptions in memory.
type inMemory struct {
	*assembly
	rows *subscriptions.Memory
	past *history.Memory
}
