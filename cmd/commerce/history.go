package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/subscriptions/history"
)

// withHistory adds the histories of subscriptions.
func withHistory() extra {
	return extra{
		serve: func(_ context.Context, s *onPostgres) error {
			s.SubscriptionCalls = append(s.SubscriptionCalls, history.Calls(history.NewPostgres(s.rows, s.timeline)))
			return nil
		},
		demo: func(m *inMemory) { m.SubscriptionCalls = append(m.SubscriptionCalls, history.Calls(m.past)) },
		prune: func(ctx context.Context, db *pgxpool.Pool) (string, error) {
			folded, err := history.Fold(ctx, db)
			return fmt.Sprintf("shortened the histories of %d subscriptions to %d days", folded, history.KeepStates/(24*time.Hour)), err
		},
	}
}
