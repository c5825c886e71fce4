package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/cmd/internal/cli"
	"commerce/deploy/connect"
	"commerce/subscriptions/replicas"
)

// replicaSettings are the settings of reads from Postgres replicas.
type replicaSettings struct {
	URL    string
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
		{Name: "DATABASE_REPLICA_URL", Hint: "URL", Secret: true, Help: "Postgres URL whose hosts are the replicas to read subscriptions from. Default: none; all reads use DATABASE_URL.", Value: cli.Text(&r.URL, checkReplicaURL)},
		{Name: "REPLICA_MAX_LAG", Default: "5s", Help: fmt.Sprintf("Maximum lag of a replica that is read, from %s to %s.", minMaxLag, maxMaxLag), Value: cli.Duration(&r.MaxLag, minMaxLag, maxMaxLag)},
	}
}

// checkReplicaURL checks a URL, unless it is empty, without connecting.
func checkReplicaURL(url string) error {
	if url == "" {
		return nil
	}
	_, err := connect.PostgresHosts(url)
	return err
}

// replicaReader checks replicas in the background, and has their pools.
type replicaReader struct {
	set   *replicas.Set // nil: no replicas
	pools []*pgxpool.Pool

	stop    context.CancelFunc
	stopped chan struct{}
}

// open opens the pools and starts the checks. Replicas may be unreachable. The caller calls
// close.
func (r replicaSettings) open(ctx context.Context, primary databaseSettings, seen instruments, log *slog.Logger) (*replicaReader, error) {
	reader := &replicaReader{stop: func() {}, stopped: make(chan struct{})}
	if r.URL == "" {
		close(reader.stopped)
		return reader, nil
	}
	config := replicas.Config{MaxLag: r.MaxLag, Log: log, Observe: seen.metrics.ReplicaChecked}
	var err error
	if config.Primary, err = primary.pool(ctx, checkPool(""), seen); err != nil {
		return nil, err
	}
	reader.pools = append(reader.pools, config.Primary)
	if config.Servers, err = reader.openServers(ctx, r.URL, seen); err != nil {
		closeAll(reader.pools)
		return nil, &cli.BadSetting{Name: "DATABASE_REPLICA_URL", Err: err}
	}
	reader.set = replicas.New(config)
	ctx, reader.stop = context.WithCancel(context.WithoutCancel(ctx)) // requests in flight outlive ctx
	go func() {
		defer close(reader.stopped)
		reader.set.Run(ctx)
	}()
	return reader, nil
}

// openServers opens the pools of each host of a URL.
func (r *replicaReader) openServers(ctx context.Context, url string, seen instruments) ([]replicas.Server, error) {
	hosts, err := connect.PostgresHosts(url)
	if err != nil {
		return nil, err
	}
	servers := make([]replicas.Server, len(hosts))
	for i, host := range hosts {
		s := &servers[i]
		s.Name = host
		for pool, config := range map[**pgxpool.Pool]connect.PostgresConfig{
			&s.Pool: listPool(host), &s.SummaryPool: summaryPool(host), &s.Checks: checkPool(host),
		} {
			if *pool, err = openPool(ctx, url, config, seen); err != nil {
				return nil, err
			}
			r.pools = append(r.pools, *pool)
		}
	}
	return servers, nil
}

// checkPool is listPool for checks of replicas.
func checkPool(only string) connect.PostgresConfig {
	return connect.PostgresConfig{ApplicationName: "commerce replica checks", Only: only, MaxConns: 1}
}

// states returns the state of each replica, by name.
func (r *replicaReader) states() map[string]string {
	states := map[string]string{}
	for name, state := range r.set.States() {
		states[name] = string(state)
	}
	return states
}

// close ends the checks and closes the pools.
func (r *replicaReader) close() {
	r.stop()
	<-r.stopped
	closeAll(r.pools)
}
