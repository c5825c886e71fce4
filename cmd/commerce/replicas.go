package main

import (
	"context"
	"fmt"
	"time"

	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/subscriptions/postgres"
	"commerce/subscriptions/replicas"
)

// withReplicas adds replicas of Postgres, which serve reads.
func withReplicas() extra {
	r := &replicaSettings{}
	return extra{settings: []cli.Setting{r.setting()}, replicate: r.replicate}
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

// replicate starts the checks of replicas, which may be unreachable.
func (r *replicaSettings) replicate(ctx context.Context, s *onPostgres) error {
	if r.URL == "" {
		return nil
	}
	config := replicas.Config{MaxLag: maxLag, Log: s.Log, Observe: s.Metrics.ReplicaChecked}
	var err error
	if config.Primary, err = s.pool(ctx, "DATABASE_URL", s.url, checkPool("")); err != nil {
		return err
	}
	for _, host := range r.Hosts {
		checks, err := s.pool(ctx, "DATABASE_REPLICA_URL", r.URL, checkPool(host))
		if err != nil {
			return err
		}
		config.Servers = append(config.Servers, replicas.Server{Name: host, Checks: checks})
	}
	set := replicas.New(config)
	s.atEnd(background(context.WithoutCancel(ctx), set.Run)) // requests in flight outlive ctx
	s.replicaURL, s.fit, s.timeline, s.admin.Replicas = r.URL, set.Fit, set.Timeline, set.States
	s.replicas = func(ctx context.Context, on poolOn) (all []postgres.Replica, err error) {
		for _, watched := range set.All() {
			pool, err := s.pool(ctx, "DATABASE_REPLICA_URL", r.URL, on(watched.Name))
			if err != nil {
				return nil, err
			}
			all = append(all, postgres.Replica{Pool: pool, Failed: watched.Suspect})
		}
		return all, nil
	}
	return nil
}

func checkPool(only string) connect.PostgresConfig {
	return connect.PostgresConfig{ApplicationName: "commerce replica checks", Only: only, MaxConns: 1}
}
