package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/subscriptions/replicas"
)

// replicaSettings are the settings of reads from Postgres replicas.
type replicaSettings struct {
	URL    string
	Hosts  []string // of URL
	MaxLag time.Duration
}

// minMaxLag and maxMaxLag bound REPLICA_MAX_LAG. Replicas are checked five times within the
// minimum, and the samples of the primary cover the maximum.
const (
	minMaxLag = time.Second
	maxMaxLag = 10 * time.Minute
)

// settings declares the settings.
func (r *replicaSettings) settings() []cli.Setting {
	return []cli.Setting{
		{Name: "DATABASE_REPLICA_URL", Hint: "URL", Secret: true, Help: "Postgres URL whose hosts are the replicas to read subscriptions from. Default: none; all reads use DATABASE_URL.", Value: cli.Text(&r.URL, r.readHosts)},
		{Name: "REPLICA_MAX_LAG", Default: "5s", Help: fmt.Sprintf("Maximum lag of a replica that is read, from %s to %s.", minMaxLag, maxMaxLag), Value: cli.Duration(&r.MaxLag, minMaxLag, maxMaxLag)},
	}
}

func (r *replicaSettings) readHosts(url string) (err error) {
	r.Hosts, err = connect.PostgresHosts(url)
	return err
}

// open opens the pools of the replicas and starts their checks; nil without replicas. They may be
// unreachable.
func (r replicaSettings) open(ctx context.Context, a *assembly, primary databaseSettings) (*replicas.Set, error) {
	if r.URL == "" {
		return nil, nil
	}
	config := replicas.Config{MaxLag: r.MaxLag, Log: a.Log, Observe: a.Metrics.ReplicaChecked}
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

// checkPool is listPool for checks of replicas.
func checkPool(only string) connect.PostgresConfig {
	return connect.PostgresConfig{ApplicationName: "commerce replica checks", Only: only, MaxConns: 1}
}
