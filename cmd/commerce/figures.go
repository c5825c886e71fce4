package main

import (
	"context"
	"time"

	"commerce/deploy/connect"
	"commerce/subscriptions/figures"
)

// A summary reads all rows of a store, so summaries have few connections and more time than lists. One of
// the connections is for metrics, which take longer.
const (
	summaryConns   = 3
	summaryTimeout = 10 * time.Second
)

// withFigures adds the summary and the monthly metrics of subscriptions.
func withFigures() extra {
	return extra{
		serve: func(ctx context.Context, s *onPostgres) error {
			source, err := openFigures(ctx, s)
			if err == nil {
				s.SubscriptionCalls = append(s.SubscriptionCalls, figures.Calls(figures.Config{Source: source}))
			}
			return err
		},
		demo: func(m *inMemory) {
			m.SubscriptionCalls = append(m.SubscriptionCalls, figures.Calls(figures.Config{Source: figures.NewMemory(m.rows, m.past), Fresh: true}))
		},
	}
}

// openFigures opens pools for figures: lists do not wait for summaries.
func openFigures(ctx context.Context, s *onPostgres) (*figures.Postgres, error) {
	servers, err := s.servers(ctx, summaryPool)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // requests in flight outlive ctx
	s.atEnd(stop)
	return figures.NewPostgres(ctx, servers), nil
}

// summaryPool leaves the database's other cores to lists. A summary of 100,000 rows takes as long with parallel
// workers as without. It reads no rows of other stores, and groups without a sort, which would spill to disk.
func summaryPool(host string) connect.PostgresConfig {
	return connect.PostgresConfig{
		ApplicationName: "commerce summaries", Only: host, MaxConns: summaryConns, StatementTimeout: summaryTimeout,
		Settings: map[string]string{"max_parallel_workers_per_gather": "0", "enable_seqscan": "off", "enable_sort": "off"},
	}
}
