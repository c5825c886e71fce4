package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions/feed"
)

// withFeed adds the changes of subscriptions.
func withFeed() extra {
	return extra{
		serve: func(_ context.Context, s *onPostgres) error {
			changes := feed.NewPostgres(s.rows, s.timeline)
			s.SubscriptionCalls = append(s.SubscriptionCalls, feed.Calls(changes))
			s.connected = append(s.connected, func(ctx context.Context) {
				if err := changes.MarkTimeline(ctx); err != nil {
					s.Log.WarnContext(ctx, "cannot record the timeline of Postgres: the next request for changes tries again", "err", err)
				}
			})
			return nil
		},
		demo: func(m *inMemory) {
			m.SubscriptionCalls = append(m.SubscriptionCalls, feed.Calls(feed.NewMemory(m.rows)))
		},
		prune: func(ctx context.Context, db *pgxpool.Pool) (string, error) {
			deleted, err := feed.Prune(ctx, db)
			return fmt.Sprintf("deleted the records of %d deletions older than %d days", deleted, feed.KeepDeletions/(24*time.Hour)), err
		},
	}
}
